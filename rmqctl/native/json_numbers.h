/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_JSON_NUMBERS_H
#define RMQCTL_JSON_NUMBERS_H

/* rmqctl/parse/json_plan.py: what is known of a body */
enum {
    NO = 0,
    YES = 1,
    OPEN = 2,
};

/* rmqctl/parse/json_plan.py: conditions */
enum {
    ALL = 0,
    ANY = 1,
    NEGATED = 2,
    PRESENT = 3,
    AMONG = 4,
    ORDERED = 5,
    OTHER = 6,
    NODES = 7,
};

/* rmqctl/parse/json_plan.py: orders */
enum {
    LESS = 0,
    AT_MOST = 1,
    MORE = 2,
    AT_LEAST = 3,
};

/* rmqctl/parse/json_plan.py: numbers */
enum {
    NO_NUMBER = 0,
    AN_INT = 1,
    A_FLOAT = 2,
};

#endif

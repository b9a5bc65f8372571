/* Small reads of many files in one call, in which other threads run: a store may have tens of
 * thousands of queues. The references are in storage/files/many_files.py, which also takes what is
 * unusual.
 */
#include "kernel.h"
#include "native.h"
#include <dirent.h>
#include <stdlib.h>

enum { DIGITS = 20, OPENED_TO_READ = O_RDONLY | O_CLOEXEC | O_NONBLOCK };

typedef struct {
    PyObject *kept;     /* the paths as bytes */
    const char **names; /* in kept */
    Py_ssize_t count;
} Paths;

static void forget(Paths *paths)
{
    Py_CLEAR(paths->kept);
    free(paths->names);
    paths->names = NULL;
}

/* Takes a list of paths; 0 with an error. */
static int take_paths(PyObject *list, Paths *paths)
{
    if (!PyList_CheckExact(list)) {
        PyErr_SetString(PyExc_TypeError, "a list of paths is required");
        return 0;
    }
    paths->count = PyList_Size(list);
    paths->kept = PyList_New(paths->count);
    paths->names = calloc((size_t)paths->count + 1, sizeof *paths->names);
    if (paths->kept != NULL && paths->names == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < paths->count; i++) {
        PyObject *path = PyUnicode_EncodeFSDefault(PyList_GetItem(list, i));
        char *name = NULL;
        if (path != NULL && PyBytes_AsStringAndSize(path, &name, NULL) < 0)
            Py_CLEAR(path);
        paths->names[i] = name;
        if (path != NULL)
            PyList_SetItem(paths->kept, i, path);
    }
    if (PyErr_Occurred())
        forget(paths);
    return paths->kept != NULL;
}

typedef struct {
    int64_t *at;
    Py_ssize_t count, room;
} Numbers;

/* Adds a number; 0 without memory. */
static int add_number(Numbers *numbers, int64_t number)
{
    if (numbers->count == numbers->room) {
        const Py_ssize_t room = numbers->room ? 2 * numbers->room : 4;
        int64_t *more = realloc(numbers->at, (size_t)room * sizeof *more);
        if (more == NULL)
            return 0;
        numbers->at = more, numbers->room = room;
    }
    numbers->at[numbers->count++] = number;
    return 1;
}

/* The number that a file is named after, -1 for another name. */
static int64_t offset_named(const char *name)
{
    uint64_t number = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9')
            return -1;
        number = i == DIGITS - 1 && number > INT64_MAX / 10 ? UINT64_MAX
                                                            : number * 10 + (uint64_t)(name[i] - '0');
    }
    return name[DIGITS] || number > INT64_MAX ? -1 : (int64_t)number;
}

static int by_number(const void *one, const void *other)
{
    const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

/* Lists the files of a folder, none where there is no folder; 0 where something is unusual. */
static int list_files(const char *path, int64_t file_size, Numbers *found)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return errno == ENOENT || errno == ENOTDIR;
    int usual = 1;
    errno = 0;
    for (struct dirent *entry; usual && (entry = readdir(folder)) != NULL; errno = 0) {
        const int64_t offset = offset_named(entry->d_name);
        if (offset < 0 || offset % file_size || entry->d_type == DT_DIR)
            continue;
        usual = entry->d_type == DT_REG && add_number(found, offset);
    }
    usual = usual && !errno;
    closedir(folder);
    if (found->count > 1)
        qsort(found->at, (size_t)found->count, sizeof *found->at, by_number);
    return usual;
}

static PyObject *list_of(const Numbers *numbers)
{
    PyObject *found = PyList_New(numbers->count);
    for (Py_ssize_t i = 0; found != NULL && i < numbers->count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers->at[i]);
        if (number == NULL || PyList_SetItem(found, i, number) < 0)
            Py_CLEAR(found);
    }
    return found;
}

PyDoc_STRVAR(list_offsets_doc, "list_offsets(folders, file_size)\n\nSee storage.files.many_files.");
static PyObject *list_offsets(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 2))
        return NULL;
    const int64_t file_size = PyLong_AsLongLong(args[1]);
    if (file_size <= 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a file has at least one byte");
        return NULL;
    }
    Paths paths;
    if (!take_paths(args[0], &paths))
        return NULL;
    Numbers *listed = calloc((size_t)paths.count + 1, sizeof *listed);
    char *usual = calloc((size_t)paths.count + 1, 1);
    PyObject *found = NULL;
    if (listed == NULL || usual == NULL) {
        PyErr_NoMemory();
    } else {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t i = 0; i < paths.count; i++)
            usual[i] = (char)list_files(paths.names[i], file_size, &listed[i]);
        Py_END_ALLOW_THREADS;
        found = PyList_New(paths.count);
    }
    for (Py_ssize_t i = 0; found != NULL && i < paths.count; i++) {
        PyObject *offsets = usual[i] ? list_of(&listed[i]) : Py_NewRef(Py_None);
        if (offsets == NULL || PyList_SetItem(found, i, offsets) < 0)
            Py_CLEAR(found);
    }
    for (Py_ssize_t i = 0; listed != NULL && i < paths.count; i++)
        free(listed[i].at);
    free(listed), free(usual);
    forget(&paths);
    return found;
}

typedef struct {
    int64_t position, count; /* what is to be read */
    int64_t read, length;    /* what was: -1 for nothing; and the length of the file */
    char *to;
} Part;

/* Reads a part of a file; ``only``: if it has no data after that, and is a file. */
static void read_part(const char *path, Part *part, int only)
{
    struct stat status;
    const int fd = open(path, OPENED_TO_READ);
    part->read = -1;
    if (fd < 0)
        return;
    int usual = 1;
    if (only) {
        usual = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
        part->length = usual ? status.st_size : 0;
        if (part->length > part->count)
            usual = has_only_holes_from(fd, part->count);
    }
    if (usual)
        part->read = pread(fd, part->to, (size_t)part->count, part->position);
    close(fd);
}

/* Reads all parts; NULL with an error, else where their bytes are. */
static char *read_parts(const Paths *paths, Part *parts, int only)
{
    int64_t total = 0;
    for (Py_ssize_t i = 0; i < paths->count; i++) {
        if (parts[i].position < 0 || parts[i].count < 0 || parts[i].count > MOST) {
            PyErr_SetString(PyExc_ValueError, "no part of a file");
            return NULL;
        }
        total += parts[i].count;
    }
    char *bytes = malloc((size_t)total + 1), *to = bytes;
    if (bytes == NULL)
        return (char *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < paths->count; to += parts[i++].count)
        parts[i].to = to;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0; i < paths->count; i++)
        read_part(paths->names[i], &parts[i], only);
    Py_END_ALLOW_THREADS;
    return bytes;
}

/* The number at a place of a list; -1 with an error. */
static int64_t number_at(PyObject *list, Py_ssize_t number)
{
    PyObject *item = PyList_CheckExact(list) ? PyList_GetItem(list, number) : NULL;
    if (item == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "lists are required");
    return item == NULL ? -1 : PyLong_AsLongLong(item);
}

PyDoc_STRVAR(read_each_doc, "read_each(paths, positions, counts)\n\n"
                            "See storage.files.many_files.");
static PyObject *read_each(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Paths paths;
    (void)module;
    if (!are_arguments(count, 3) || !take_paths(args[0], &paths))
        return NULL;
    Part *parts = calloc((size_t)paths.count + 1, sizeof *parts);
    if (parts == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < paths.count; i++) {
        parts[i].position = number_at(args[1], i);
        parts[i].count = PyErr_Occurred() ? 0 : number_at(args[2], i);
    }
    char *bytes = PyErr_Occurred() ? NULL : read_parts(&paths, parts, 0);
    PyObject *found = bytes == NULL ? NULL : PyList_New(paths.count);
    for (Py_ssize_t i = 0; found != NULL && i < paths.count; i++) {
        PyObject *read = parts[i].read < 0
                             ? Py_NewRef(Py_None)
                             : PyBytes_FromStringAndSize(parts[i].to, (Py_ssize_t)parts[i].read);
        if (read == NULL || PyList_SetItem(found, i, read) < 0)
            Py_CLEAR(found);
    }
    free(bytes), free(parts);
    forget(&paths);
    return found;
}

PyDoc_STRVAR(read_heads_doc, "read_heads(paths, count)\n\nSee storage.files.many_files.");
static PyObject *read_heads(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Paths paths;
    (void)module;
    if (!are_arguments(count, 2))
        return NULL;
    const int64_t bytes_of_each = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred() || !take_paths(args[0], &paths))
        return NULL;
    Part *parts = calloc((size_t)paths.count + 1, sizeof *parts);
    if (parts == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; parts != NULL && i < paths.count; i++)
        parts[i].count = bytes_of_each;
    char *bytes = parts == NULL ? NULL : read_parts(&paths, parts, 1);
    PyObject *found = bytes == NULL ? NULL : PyList_New(paths.count);
    for (Py_ssize_t i = 0; found != NULL && i < paths.count; i++) {
        PyObject *head = NULL;
        if (parts[i].read < 0) {
            head = Py_NewRef(Py_None);
        } else {
            PyObject *read = PyBytes_FromStringAndSize(parts[i].to, (Py_ssize_t)parts[i].read);
            head = read == NULL ? NULL : Py_BuildValue("NL", read, (long long)parts[i].length);
        }
        if (head == NULL || PyList_SetItem(found, i, head) < 0)
            Py_CLEAR(found);
    }
    free(bytes), free(parts);
    forget(&paths);
    return found;
}

PyMethodDef many_file_functions[] = {
    {"list_offsets", (PyCFunction)(void (*)(void))list_offsets, METH_FASTCALL, list_offsets_doc},
    {"read_each", (PyCFunction)(void (*)(void))read_each, METH_FASTCALL, read_each_doc},
    {"read_heads", (PyCFunction)(void (*)(void))read_heads, METH_FASTCALL, read_heads_doc},
    {NULL, NULL, 0, NULL},
};

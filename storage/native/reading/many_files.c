/* Small reads of many files in one call, in which other threads run: a store may have tens of
 * thousands of queues. The references are in storage/files/many_files.py and, of the ends of queues,
 * in storage/queue/written_end.py; what is unusual is left to their callers.
 */
#include "kernel.h"
#include "native.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
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
    int64_t read;            /* what was: -1 for nothing */
    char *to;
} Part;

static void read_part(const char *path, Part *part)
{
    const int fd = open(path, OPENED_TO_READ);
    part->read = -1;
    if (fd < 0)
        return;
    part->read = pread(fd, part->to, (size_t)part->count, part->position);
    close(fd);
}

/* Reads all parts; NULL with an error, else where their bytes are. */
static char *read_parts(const Paths *paths, Part *parts)
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
        read_part(paths->names[i], &parts[i]);
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
    char *bytes = PyErr_Occurred() ? NULL : read_parts(&paths, parts);
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

typedef struct {
    Numbers files;
    int64_t end; /* queue offset after the last written unit, -1 where something is unusual */
    int64_t count;
    unsigned char *units; /* the last ones, so many bytes */
} QueueEnd;

typedef struct {
    int64_t file_size, head, kept; /* bytes of a file, that are read, and that are kept */
    unsigned char *data;           /* room for the head */
} Reading;

/* The units up to the last written one of a file that has only zeros after what was read of it; -1
 * where they do not end once, in zeros. */
static int64_t units_in(const unsigned char *data, int64_t read, int64_t length)
{
    int64_t low = 0, high = length / UNIT;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2, at = middle * UNIT;
        if (at + UNIT <= read && long_at(data + at) >= 0 && int_at(data + at + 8) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (int64_t at = low * UNIT; at < read; at++)
        if (data[at])
            return -1;
    return low;
}

/* Reads the head of a queue's last file; gives the bytes that were read, and the length of the
 * file; -1 where something is unusual. */
static int64_t read_head(const char *folder, int64_t first, const Reading *how, int64_t *length)
{
    char path[PATH_MAX];
    struct stat status;
    const int size = snprintf(path, sizeof path, "%s/%020lld", folder, (long long)first);
    const int fd = size < (int)sizeof path ? open(path, OPENED_TO_READ) : -1;
    if (fd < 0)
        return -1;
    int64_t read = -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        *length = status.st_size < how->file_size ? status.st_size : how->file_size;
        const int64_t count = *length < how->head ? *length : how->head;
        if (*length == count || has_only_holes_from(fd, count))
            read = pread(fd, how->data, (size_t)count, 0);
    }
    close(fd);
    return read;
}

static void find_end(const char *folder, const Reading *how, QueueEnd *found)
{
    int64_t length = 0;
    found->end = -1;
    if (!list_files(folder, how->file_size, &found->files) || !found->files.count)
        return;
    const int64_t first = found->files.at[found->files.count - 1];
    const int64_t read = read_head(folder, first, how, &length);
    const int64_t units = read < 0 ? -1 : units_in(how->data, read, length);
    if (units <= 0)
        return;
    const int64_t end = units * UNIT;
    found->count = end < how->kept ? end : how->kept;
    memcpy(found->units, how->data + end - found->count, (size_t)found->count);
    found->end = first / UNIT + units;
}

/* The log offsets of the first and the last of some units, and where the record of the last one ends,
 * if each is written, and its record begins where that of the one before ends, or later; else None. */
static PyObject *span_of(const unsigned char *units, int64_t count)
{
    int64_t offset = 0, stop = 0;
    for (int64_t at = 0; at < count; at += UNIT) {
        const int64_t size = int_at(units + at + 8);
        offset = long_at(units + at);
        if (offset < stop || offset >= (int64_t)1 << 62 || size <= 0 || size >= PRE_BLANK_SIZE)
            return Py_NewRef(Py_None);
        stop = offset + size;
    }
    return Py_BuildValue("LLL", (long long)long_at(units), (long long)offset, (long long)stop);
}

static PyObject *end_of(const QueueEnd *found)
{
    if (found->end < 0)
        return Py_NewRef(Py_None);
    PyObject *files = list_of(&found->files);
    PyObject *units = PyBytes_FromStringAndSize((char *)found->units, (Py_ssize_t)found->count);
    PyObject *span = span_of(found->units, found->count);
    if (files != NULL && units != NULL && span != NULL)
        return Py_BuildValue("NLNN", files, (long long)found->end, units, span);
    Py_XDECREF(files), Py_XDECREF(units), Py_XDECREF(span);
    return NULL;
}

/* Finds the ends of all queues; 0 with an error. */
static int find_ends(const Paths *paths, const Reading *how, QueueEnd *ends, unsigned char *units)
{
    if (ends == NULL || units == NULL || how->data == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0; i < paths->count; i++) {
        ends[i].units = units + i * how->kept;
        find_end(paths->names[i], how, &ends[i]);
    }
    Py_END_ALLOW_THREADS;
    return 1;
}

PyDoc_STRVAR(written_ends_doc, "written_ends(folders, file_size, head, kept)\n\n"
                               "See storage.queue.written_end.");
static PyObject *written_ends(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Paths paths;
    (void)module;
    if (!are_arguments(count, 4))
        return NULL;
    Reading how = {PyLong_AsLongLong(args[1]), 0, 0, NULL};
    how.head = PyErr_Occurred() ? 0 : PyLong_AsLongLong(args[2]);
    how.kept = PyErr_Occurred() ? 0 : PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (how.file_size <= 0 || how.head <= 0 || how.head > MOST || how.kept <= 0 || how.kept > MOST)
        return PyErr_Format(PyExc_ValueError, "no part of a file");
    if (!take_paths(args[0], &paths))
        return NULL;
    QueueEnd *ends = calloc((size_t)paths.count + 1, sizeof *ends);
    unsigned char *units = calloc((size_t)paths.count + 1, (size_t)how.kept);
    how.data = malloc((size_t)how.head);
    PyObject *found = find_ends(&paths, &how, ends, units) ? PyList_New(paths.count) : NULL;
    for (Py_ssize_t i = 0; found != NULL && i < paths.count; i++) {
        PyObject *end = end_of(&ends[i]);
        if (end == NULL || PyList_SetItem(found, i, end) < 0)
            Py_CLEAR(found);
    }
    for (Py_ssize_t i = 0; ends != NULL && i < paths.count; i++)
        free(ends[i].files.at);
    free(ends), free(units), free(how.data);
    forget(&paths);
    return found;
}

PyMethodDef many_file_functions[] = {
    {"list_offsets", (PyCFunction)(void (*)(void))list_offsets, METH_FASTCALL, list_offsets_doc},
    {"read_each", (PyCFunction)(void (*)(void))read_each, METH_FASTCALL, read_each_doc},
    {"written_ends", (PyCFunction)(void (*)(void))written_ends, METH_FASTCALL, written_ends_doc},
    {NULL, NULL, 0, NULL},
};

"""Reads traces: rows of trace.csv, or of any CSV with its columns, as arrays. What the columns mean is settled in lib/trace and lib/base/event.h.

Ten million rows take seconds: regular_rows() takes whole columns of a block of text at once. It gives up where anything is out of the ordinary, and
numpy's reader, which is slower, decides what the text means; errors are its alone.
"""

import os
import re
import sys
import warnings

import numpy as np


class DataError(Exception):
    """What is wrong with the input, in one line."""


EVENTS = ("", "raise", "floor", "forgiven", "backoff", "overflow", "ceiling", "growth")  # lib/base/event.h
OVERFLOWS = ("raise", "floor", "forgiven", "backoff", "overflow")  # events of steps whose gradients were not finite


class Trace:
    """Arrays, one entry a row: step, loss, scale, good (float; good may be None), skipped (bool), event (in EVENTS).

    x, x_end: where on the x axis the row begins and ends. x_name: what that axis counts. format: of the output gradient.
    """

    def __len__(self):
        return len(self.step)

    def keep(self, rows):
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, values[rows])


def read_trace(path):
    try:
        with open(path, "rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                raise DataError(f"{path}: the file is empty")
            file.seek(-1, os.SEEK_END)
            complete = file.read(1) == b"\n" or in_progress(path)
        with open(path, encoding="latin-1", newline="") as file:  # every byte is a character
            header = file.readline(1 << 16).rstrip("\r\n").split(",")
        wanted = wanted_columns(path, header)
        table = regular_rows(path, header, wanted) if complete else None
        if table is None:
            with open(path, encoding="latin-1", newline="") as file:
                file.readline()
                lines = (line for line in file if line.endswith("\n")) if complete else file
                table = any_rows(path, lines, header, wanted, complete)
    except FileNotFoundError as error:
        raise DataError(f"{path}: {error.strerror}; a run's folder or a trace (CSV) is wanted") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None

    trace = Trace()
    trace.step, trace.loss, trace.scale = table["step"], table["loss"], table["loss_scale"]
    trace.good = table["good_steps"] if "good_steps" in wanted else None
    not_later = np.flatnonzero(~(np.diff(trace.step) > 0))
    if not_later.size or not np.isfinite(trace.step).all():
        row = int(not_later[0]) + 1 if not_later.size else 0
        raise DataError(f"{path}:{row + 2}: step {trace.step[row]:g} does not come after the one before it")
    negative = np.flatnonzero(trace.scale < 0)
    if negative.size:
        raise DataError(f"{path}:{negative[0] + 2}: loss_scale {trace.scale[negative[0]]:g} is negative")

    trace.event = table["event"] if "event" in wanted else np.zeros(len(trace), np.int8)
    if "grads_finite" in wanted:
        trace.skipped = table["grads_finite"] == 0
        if "event" not in wanted:
            trace.event[trace.skipped] = EVENTS.index("overflow")
    else:
        trace.skipped = np.isin(trace.event, [EVENTS.index(name) for name in OVERFLOWS])
    trace.x_name, trace.x, trace.x_end = "step", trace.step, trace.step + 1
    trace.epoch = table["epoch"] if "epoch" in wanted else None
    trace.skipped_total = table["skipped_total"] if "skipped_total" in wanted else None
    trace.format = None
    return trace


def in_progress(path):
    """Whether the trace belongs to a run that is not done: its last line may be half written, and is left out then."""
    folder = os.path.dirname(os.path.abspath(path))
    return os.path.exists(os.path.join(folder, "config.resolved.yaml")) and not os.path.exists(os.path.join(folder, "summary.json"))


def place(path, trace, x_name, span):
    """Puts the rows on another x axis (update, epoch), and keeps those that reach into span, (from, to) of that axis."""
    trace.x_name = x_name
    if x_name == "update":
        if trace.skipped_total is not None:
            before = trace.skipped_total - trace.skipped
        elif trace.step[0] == 0 and (np.diff(trace.step) == 1).all():
            before = np.cumsum(trace.skipped) - trace.skipped
        else:
            raise DataError(f"{path}: --x update needs a trace of every step, or its column 'skipped_total'")
        trace.x = trace.step - before
        trace.x_end = trace.x + ~trace.skipped
    elif x_name == "epoch":
        if trace.epoch is None:
            raise DataError(f"{path}: --x epoch needs the column 'epoch' (trace.columns in the config)")
        # Within an epoch the steps lie evenly; the last epoch, which may be cut short, takes the pace of the longest.
        first = np.flatnonzero(np.diff(trace.epoch, prepend=trace.epoch[0] - 1) > 0)
        begins, epochs = trace.step[first], trace.epoch[first]
        pace = np.max(np.diff(begins) / np.diff(epochs)) if len(first) > 1 else trace.step[-1] + 1 - begins[0]
        begins, epochs = np.append(begins, max(begins[-1] + pace, trace.step[-1] + 1)), np.append(epochs, epochs[-1] + 1)
        trace.x, trace.x_end = np.interp(trace.step, begins, epochs), np.interp(trace.step + 1, begins, epochs)
    if span:
        rows = (trace.x_end >= span[0]) & (trace.x <= span[1])
        if not rows.any():
            raise DataError(f"{path}: no row between {x_name} {span[0]:g} and {span[1]:g}; "
                            f"the trace has {trace.x[0]:g} to {trace.x[-1]:g}")
        trace.keep(rows)


WANTED = ("step", "loss", "loss_scale", "good_steps", "grads_finite", "event", "epoch", "skipped_total")


def wanted_columns(path, header):
    found = f"(found: {shown(','.join(header))})"
    for name in ("step", "loss", "loss_scale"):
        if name not in header:
            raise DataError(f"{path}: no column '{name}' {found}")
    if "grads_finite" not in header and "event" not in header:
        raise DataError(f"{path}: neither a column 'grads_finite' nor one 'event' {found}")
    if len(set(header)) != len(header):
        raise DataError(f"{path}: a column stands twice in the header {found}")
    return [name for name in WANTED if name in header]


def any_rows(path, file, header, wanted, complete):
    """{name: array} of the wanted columns; event as a place in EVENTS. Raises DataError: names the row that is wrong."""
    types = [(name, "S1" if name not in wanted else "S12" if name == "event" else "f8") for name in header]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "no data": said below
            table = np.loadtxt(file, dtype=types, delimiter=",", comments=None, ndmin=1)
    except ValueError as error:
        raise bad_row(path, types, complete) or DataError(f"{path}: {shown(str(error))}") from None
    if not complete:
        raise DataError(f"{path}: the last line is cut off (it has no line end)")
    if not len(table):
        raise DataError(f"{path}: a header and no rows: nothing to draw")
    columns = {name: table[name] for name in wanted}
    if "event" in wanted:
        columns["event"] = event_codes(path, columns["event"])
    return columns


def event_codes(path, cells):
    codes = np.zeros(len(cells), np.int8)
    known = cells == b""
    for code, name in enumerate(EVENTS[1:], 1):
        this = cells == name.encode()
        codes[this] = code
        known |= this
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        cell = shown(cells[row].decode("latin-1"))
        raise DataError(f"{path}:{row + 2}: event: '{cell}' is none of {', '.join(EVENTS[1:])}")
    return codes


# ---- Rows as the program writes them, a block of them at once --------------------------------------------------------

BLOCK = 1 << 21  # bytes: as much as stays in the processor's cache while the columns are taken
PAD = 32  # bytes around a block, so that every cell can be taken as whole words
SPACES, ZEROS = np.uint64(0x2020202020202020), np.uint64(0x3030303030303030)
LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(8)] + [(1 << 64) - 1], np.uint64)  # the first `count` bytes of a word
FLAGS = ("grads_finite",)
INTEGERS = ("step", "good_steps", "epoch", "skipped_total")


class Irregular(Exception):
    """Something that regular_rows leaves to any_rows."""


def regular_rows(path, header, wanted):
    """What any_rows returns, or None where a cell is not as the program writes it. Both read every number to the same bits."""
    if sys.byteorder != "little":
        return None
    blocks = []
    try:
        with open(path, "rb") as file:
            file.readline()
            text = bytearray(BLOCK + 2 * PAD)
            rest = b""
            while True:
                text[PAD:PAD + len(rest)] = rest
                got = file.readinto(memoryview(text)[PAD + len(rest):PAD + BLOCK])
                end = text.rfind(b"\n", PAD, PAD + len(rest) + got) + 1
                if end == 0:
                    if rest or got:
                        return None  # a line as long as a block
                    break
                whole = PAD + len(rest) + got
                blocks.append(columns_of(text, end, header, wanted))
                rest = bytes(text[end:whole])
    except Irregular:
        return None
    if not blocks:
        return None
    return {name: np.concatenate([block[name] for block in blocks]) for name in wanted}


def columns_of(text, end, header, wanted):
    """The columns of the lines that stand in text[PAD:end]."""
    if any(text.find(byte, PAD, end) >= 0 for byte in (b" ", b"\r", b"\t", b"\0")):
        raise Irregular
    data = np.frombuffer(text, np.uint8, count=end)
    newline = data == 10
    newline[:PAD] = False
    rows = np.count_nonzero(newline)
    newline[PAD:] |= data[PAD:] == 44  # and every comma
    stops = np.flatnonzero(newline)
    if len(stops) != rows * len(header):
        raise Irregular
    stops = stops.reshape(rows, len(header))
    if not (data[stops[:, -1]] == 10).all():
        raise Irregular
    words = np.ndarray((len(text) - 7,), np.uint64, buffer=text, strides=(1,))  # the eight bytes from each place on
    columns = {}
    for name in wanted:
        place = header.index(name)
        after = stops[:, place]
        before = stops[:, place - 1] if place else np.append(PAD - 1, stops[:-1, -1])
        width = after - before - 1
        if width.min() < (0 if name == "event" else 1):
            raise Irregular
        take = event_cells if name == "event" else flag_cells if name in FLAGS else integer_cells if name in INTEGERS else float_cells
        columns[name] = take(words, before + 1, after, width)
    return columns


def event_cells(words, first, after, width):
    if width.max() > 8:
        raise Irregular
    cells = words[first] & LOW_BYTES[width]
    codes = np.zeros(len(cells), np.int8)
    some = np.flatnonzero(width)
    left = cells[some]
    of_left = np.zeros(len(left), np.int8)
    for code, name in enumerate(EVENTS[1:], 1):
        of_left[left == np.uint64(int.from_bytes(name.encode(), "little"))] = code
    if not of_left.all():
        raise Irregular
    codes[some] = of_left
    return codes


def flag_cells(words, first, after, width):
    if width.max() != 1:
        raise Irregular
    digit = words[first] & np.uint64(0xFF)
    if not ((digit == 48) | (digit == 49)).all():
        raise Irregular
    return (digit == 49).astype(float)


def integer_cells(words, first, after, width):
    """Of at most 15 digits, which a double holds: two words, the digits of each added up in pairs, fours, eights."""
    longest = width.max()
    if longest > 15:
        raise Irregular
    total = eight_digits(words[after - 8], np.minimum(width, 8)).astype(float)
    if longest > 8:
        total += 1e8 * eight_digits(words[after - 16], np.maximum(width - 8, 0))
    return total


def eight_digits(cells, width):
    """The number that the last `width` bytes of each word spell."""
    garbage = LOW_BYTES[8 - width]
    digits = (cells & ~garbage) | (ZEROS & garbage)
    digits -= ZEROS
    # A byte that is no digit is 10 or more now, and so has its highest bit set here or after 0x76 was added.
    if ((digits | (digits + np.uint64(0x7676767676767676))) & np.uint64(0x8080808080808080)).any():
        raise Irregular
    pairs = (digits * np.uint64(10) + (digits >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (fours * np.uint64(10000) + (fours >> np.uint64(32))) & np.uint64(0x00000000FFFFFFFF)


def float_cells(words, first, after, width):
    """Parses a cell only where it differs from the one above it: a loss scale seldom does."""
    longest = int(width.max())
    if longest > PAD - 8:
        raise Irregular
    count = longest // 8 + 1  # with a blank behind each cell
    cells = np.empty((len(first), count), np.uint64)
    for number in range(count):
        mask = LOW_BYTES[np.clip(width - 8 * number, 0, 8)]
        cells[:, number] = (words[first + 8 * number] & mask) | (SPACES & ~mask)
    new = np.ones(len(cells), bool)
    new[1:] = (cells[1:] != cells[:-1]).any(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it stops before the end: said below
        numbers = np.fromstring(cells[new].tobytes(), sep=" ")
    if len(numbers) != np.count_nonzero(new):
        raise Irregular
    return numbers[np.cumsum(new) - 1]


def bad_row(path, types, complete):
    """The error of the first row that cannot be read, or None. Slow: for files that are known to be bad."""
    with open(path, encoding="latin-1", newline="") as file:
        for number, line in enumerate(file, 1):
            if not complete and not line.endswith("\n"):
                return DataError(f"{path}:{number}: the last line is cut off (it has no line end)")
            cells = line.rstrip("\r\n").split(",")
            if number == 1 or cells == [""]:
                continue
            if len(cells) != len(types):
                return DataError(f"{path}:{number}: {len(cells)} cells, the header has {len(types)}")
            for (name, kind), cell in zip(types, cells):
                if kind != "f8":
                    continue
                try:
                    float(cell)
                except ValueError:
                    return DataError(f"{path}:{number}: {name}: '{shown(cell)}' is not a number")
    return None


def shown(text, longest=80):
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def name_of(folder, file_name="config.resolved.yaml"):
    """The `name` of the run in this folder, or None. A line of a file that the program wrote needs no YAML reader."""
    try:
        with open(os.path.join(folder, file_name), encoding="utf-8", errors="replace") as file:
            for line in file:
                found = re.match(r"name:\s*(.+?)\s*$", line)
                if found:
                    return found.group(1).strip("\"'")
    except OSError:
        pass
    return None

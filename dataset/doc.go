// Package dataset reads tables of rows and hands them out as batches.
//
// # Shapes and units
//
// A batch is column-major: one slice of Rows entries for each variable. A
// discrete cell is a code: of 16 bits, or of 32 bits in all columns where one has
// more than 65,535 categories, up to 2^24; the largest number of its width is a
// missing cell. A continuous cell is a float32; NaN is a missing cell. An image row is
// [height, width, channels], channels fastest.
//
// # Types
//
// Without a schema, a file's column types are taken from all of its cells. A
// column of whole numbers from 0 to 4095 is discrete, with one category more
// than its largest number and at least two; a column of other numbers is
// continuous; a column of texts is discrete, its labels sorted. In files of one
// domain (.data, .npy, .idx) all discrete columns get the categories of the
// largest. Options.Types overrides this for a column. With a schema, which is
// how further files of a model are read, a cell that does not fit is an error.
//
// # Tables in text
//
// Delimiter, line ends and encoding of a table in text are told from the start
// of the file: commas, semicolons or tabs; LF, CR LF or CR; UTF-8 or UTF-16, with
// or without a byte order mark. What cannot be told is refused.
//
// # Formats
//
// A file's format is told by its extension, .gz left out, for a table in text has
// nothing else to be told by. A new format is a package below this one with a
// variable Format, which says how its rows are read, and a program that wants it
// calls
//
//	dataset.Register(".parquet", parquet.Format)
//
// as package circuit/format does with the formats of model files. Sources that a
// program makes itself, such as builtin:digits/train, are added by RegisterBuiltin;
// builtin:random is always there.
//
// # Errors
//
// Readers return errors that match ErrFormat and name file, line and column,
// counted from 1; ErrSetting is for options and paths that cannot work.
//
// # Goroutines
//
// A Loader runs one goroutine, which Close ends and waits for.
//
// # Source
//
// CSV follows RFC 4180 but for delimiters and line ends, .npy the format description of NumPy (versions 1 to 3),
// idx the format description on the MNIST page.
package dataset

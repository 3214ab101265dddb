// Package tensorboard writes event files, as TensorBoard shows them.
//
// An event file is a sequence of records; a record is a protocol buffer of type Event
// with its length and two checksums. Of the many things that an event may hold, this
// package writes scalars. Each call of Writer.Scalars is one write, so a reader that
// follows the file, or a run that is killed, sees whole records but for the last one.
//
// # Shapes and units
//
// Steps count the updates of the parameters. Values are float32, times are seconds since
// 1970.
//
// # Errors
//
// Errors are those of the file system, with the path.
//
// # Source
//
// Records: TensorFlow, core/lib/io/record_writer.h. Messages: Event and SessionLog in
// core/util/event.proto, Summary in core/framework/summary.proto, by field numbers.
package tensorboard

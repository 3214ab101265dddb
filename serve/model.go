package serve

import (
	"context"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// Model answers queries over batches of rows. It is safe for concurrent use, and is
// closed after its last Run has returned.
type Model interface {
	// Schema says what a row is. It must not change.
	Schema() *dataset.Schema
	// Queries lists what the model answers; requests that name no query get the first.
	// It must not change.
	Queries() []Query
	// Device names what the model runs on. Models of one device take turns.
	Device() string
	// Bytes is the memory that the model takes.
	Bytes() int64
	// CheckCell says what is wrong with a number that a request has in a continuous column,
	// or returns nil. It is called when the request is read, so that a number that Run could
	// not compute with fails this request alone and not those in its batch.
	CheckCell(column int, x float64) error
	// Run answers one query for a batch. An error that matches dataset.ErrFormat means that it does
	// not take one of the rows. It returns soon after ctx ends, with the
	// error of ctx; a model that launches several times looks at ctx in between.
	Run(ctx context.Context, w *Work) error
	Close() error
}

// Loader opens models. It is safe for concurrent use. The server calls Plan first, makes room,
// and then calls Open.
type Loader interface {
	// Plan returns the memory that the model at path would take, without taking it.
	Plan(ctx context.Context, path string) (bytes int64, err error)
	// Open opens the model at path.
	Open(ctx context.Context, path string) (Model, error)
}

// Query describes one question that a model answers: its tensors and parameters, which the
// server checks and lists.
type Query struct {
	Name   string
	Inputs []Input // in addition to x and observed
	// Check, unless nil, reports what is wrong with the further inputs of a request, as
	// Work.Inputs has them but for Repeat, for that many rows of the request. Requests that it refuses get its message.
	Check   func(rows int, inputs [][]float64) error
	Outputs []Output // requests that name none get all but those OnRequest
	// Numbers, FP32 or FP64, says that x reaches the model as numbers in Work.Numbers and
	// metadata lists it with this datatype. Cells of a Batch are float32 and finite; what
	// compares numbers of a request exactly takes them this way. Text is rounded once to
	// the datatype, and numbers of all datatypes come as they are. Empty: x fills Work.Batch.
	Numbers oip.Datatype
	Params  []Param
	// RowsOptional says that a request without x asks about one row without evidence.
	RowsOptional bool
	// Whole says that the query is about the model and not about rows: requests have no tensors, the model sees one row
	// without evidence, and each request is a batch of its own, since nothing is saved by computing several together.
	Whole bool
	// Repeat names the integer parameter that says how many rows the model sees for
	// each row of the request, one after another; outputs then have that dimension
	// after N. Empty: one, and no dimension.
	Repeat string
	// Flops is what a row takes, in operations, by which requests are limited.
	Flops int64
	// Plan, unless nil, looks at the parameters of a request together and says what a row of
	// it takes instead. Requests that it refuses get its message.
	Plan func(params oip.Params) (flops int64, err error)
}

// Input is a further tensor of a query, [N, Shape...], whose numbers a model gets as
// float64.
type Input struct {
	Name     string
	Datatype oip.Datatype // named in metadata; any numeric one is accepted
	Shape    []int64
	Optional bool // rows of requests that lack it hold NaN
}

// Output is a tensor that a query gives, [N, Shape...] or [N, S, Shape...].
type Output struct {
	Name     string
	Datatype oip.Datatype // unless the request asks for another
	Shape    []int64
	// ShapeOf, unless nil, is the shape of a row by the parameters of the request, which Plan has accepted. Shape then has -1 for
	// the dimensions that these choose.
	ShapeOf func(params oip.Params) []int64
	// OnRequest outputs are given to requests that name them.
	OnRequest bool
	// Completes says that the output is x with its missing cells filled in, [N, columns]. The
	// server gives the others as the request has them, which cells of a Batch may round.
	Completes bool
}

// Param is a parameter of a query, beside those of every request.
type Param struct {
	Name string
	// Default is its value where a request lacks it; its type, int64, uint64, float64,
	// bool or string, is the parameter's. A nil Default is a uint64 that the server
	// draws and returns, as for a seed.
	Default  any
	Min, Max float64 // of a number; both 0: any
	// Values are all that a string may be; nil: any. A Default that is none of them says
	// that requests must have the parameter.
	Values []string
	// Resolve, unless nil, returns the value that a string of a request means, or that string.
	Resolve func(string) string
	// Model says that the value is the name of a model of the server, which requests must give, and that Params has that
	// Model in its place: it stays open until Run has returned. Default is "". A query has at most one of these.
	Model bool
}

// Work is a batch of rows of one or more requests for the same query.
type Work struct {
	Query string
	// Batch has the rows. Run may overwrite it.
	Batch *dataset.Batch
	// Numbers are the rows of a query with Query.Numbers, [Batch.Rows, columns], NaN for
	// missing cells; Batch then has their number alone, and no columns. Run must not
	// change them.
	Numbers []float64
	// Parts say which requests the rows come from, in order.
	Parts []Part
	// Inputs are the numbers of Query.Inputs, in order, [Batch.Rows, Shape...]; nil
	// for one that no request of the batch has.
	Inputs [][]float64
	// Outputs take the results of Query.Outputs, in order, [Batch.Rows, Shape...], or with ShapeOf those of one part after
	// the other, [Part.Rows, its shape...]; nil for one that no request asked for.
	Outputs [][]float64
}

// Part is a run of rows of one request within a batch.
type Part struct {
	Rows int
	// First is the number of its first row in the request, counted after Repeat. What
	// is random may depend on Params, this number and the row alone.
	First  int
	Params oip.Params // every parameter of the query, with its type
	// Answer is set by Run to parameters of the answer, such as whether it is exact: a bool, an
	// int64, a uint64, a float64 or a string each. It may stay nil, and is the same for every part of a request.
	Answer oip.Params
	// Err is set by Run where this request alone cannot be answered: its parameters ask for
	// what the model does not compute. The requester gets its message.
	Err error
}

// width is the number of elements that a row has.
func width(shape []int64) int {
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	return n
}

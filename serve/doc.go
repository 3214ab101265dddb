// Package serve answers inference requests over HTTP: the Open Inference Protocol,
// version 2, as REST and as gRPC on one port, with binary tensors, statistics and
// model control. A Server is an http.Handler. It knows no circuits: a Model says
// which queries it answers, and a Loader opens models by path.
//
//	s, err := serve.New(serve.Options{Loader: loader, Models: []serve.Source{{Name: "nltcs", Path: "model.safetensors"}}})
//	http.ListenAndServe("127.0.0.1:8080", s)
//
// # Shapes and units
//
// A request has N rows. Its input x is [N, V], one column for each column of the
// model's schema; the input observed, BOOL [N, V], says which cells count. A float
// cell that is NaN is missing too. A query may take further inputs [N, ...] and may
// make S rows of each row. Outputs are [N, ...], or [N, S, ...]. A query about the model
// itself takes no inputs, and its outputs are of one row. Log-likelihoods are
// natural logs. Times are time.Duration in the API and seconds in metrics.
//
// # Errors
//
// Errors match the classes in errors.go, each of which has one HTTP status and one
// gRPC code. The text names the tensor and the field. What a request would cost in
// rows, cells, bytes and operations is checked before work starts.
//
// # Goroutines
//
// net/http starts one goroutine for each connection or HTTP/2 stream. A Server has
// these of its own, all of which Close ends and waits for:
//   - lane: Options.Parallel for each device; takes batches from the queues of the
//     device's models and runs them (lane.go). A lane lives as long as the server.
//   - watcher: one; looks at the files of loaded models and reloads those that
//     changed (repository.go).
//   - opener: one for each model that is being opened (repository.go).
//
// # Source
//
// The protocol is that of package oip. Batching by size and delay follows Triton's
// dynamic batcher; models that leave memory when others need it follow ollama.
package serve

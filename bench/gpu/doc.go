// Command gpu measures pce on a card that can be had for minutes, in three calls of
// ten minutes each, and prints what they found as tables:
//
//	gpu -call 1 -out results.jsonl
//	gpu -call 2 -in results.jsonl -out more.jsonl
//	gpu -call 3 -in more.jsonl -out all.jsonl -pyjuice DIR -peer bench_pyjuice.py
//	gpu -table all.jsonl
//
// Call 1 finds out whether the kernels run and give right results, and what the card
// can do; call 2 times kernels and training steps; call 3 has PyJuice beside pce.
// calls.go lists the parts of each call, and sets of parts beyond them.
//
// The set "code" has compiled code in place of layers, in about two minutes:
//
//	gpu -sets code -networks DIR -forests DIR -out code.jsonl
//
// It times sum-product networks in both types of numbers, trained forests under every
// schedule of the folder schedules and under one of Tahoe's, and complete forests of 16 to 1024 trees of depth 2 to 8 under the first one.
// Batches of forests are 512, 4096 and 1,048,576 rows; the largest of the complete forests
// is 262,144, so that 1024 trees of depth 8 take seconds at most. The rows of networks and
// the complete forests with their rows are made up, by seeds.
//
// # Shapes and units
//
// Every line of the results is a JSON object, a record of one part: what it ran, what
// that printed, how long it took. A part that the file already holds for the same
// build of pce is not run again, so a call that was cut short continues where it
// ended, on another machine too if the file is carried there (-in). One with results of
// another precision, or of a rehearsal, is refused. Times of steps
// are seconds per 1000 samples, as pce bench gives them; PyJuice's are per 60,000. The
// tables have code in rows per microsecond, twice: with rows and results in the host's
// memory, and of the kernels alone.
//
// Each part has a time budget. One that does not end within its budget is killed and
// recorded as failed, and the next part begins; a part whose budget exceeds the time
// that the call has left does not begin.
//
// # Errors
//
// A part that fails leaves its error in its record, and the others run; the exit code
// is 1 then, and when parts are left for want of time. Measurements continue after a
// failed conformance suite, but their records say so and the tables mark their rows;
// -strict stops instead. What the suite prints is in a file beside the results.
//
// # Source
//
// The circuits are those of Liu, Ahmed, Van den Broeck, ICML 2024 (arXiv 2406.00766),
// Table 1; the tables include their Figures 2 and 7. The sweep over
// depths and numbers of trees is in the manner of nvForest's.
package main

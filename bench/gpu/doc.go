// Command gpu measures pce on a card: doctor, the conformance suite, then training
// steps of the circuits of PyJuice's Table 1, cheapest first, with PyJuice beside
// them if its source is given.
//
//	gpu -pce bin/pce-cuda -suite bin/cuda.test -out results.jsonl [-pyjuice DIR -peer bench_pyjuice.py]
//	gpu -table results.jsonl
//
// # Shapes and units
//
// Every line of the output is a JSON object: "task" names what was run, "result" is
// what it printed, "seconds" its wall time. A task that the file already holds is
// not run again, so a run that was cut short goes on. Times are seconds for 1000
// samples, as pce bench gives them; PyJuice's are for 60,000.
//
// # Errors
//
// A task that fails leaves its error in the file and the others run; the exit code
// is 1 then. After a failed conformance suite they run only with -anyway. What the suite
// prints is in a file beside the results, as far as it came.
//
// # Source
//
// The circuits are those of Liu, Ahmed, Van den Broeck, ICML 2024, Table 1.
package main

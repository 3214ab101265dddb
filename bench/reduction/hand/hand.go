// Package hand has programs that a person would write for the equations of bench/reduction: every value that the outputs
// need is computed once, sums are kept up as the loops go, and no array has a dimension that can be left out. Formulas
// and draws are those of the equations.
//
// # Shapes and units
//
// Arrays are row-major, []int64 or []float64, by the names of the equations.
//
// # Errors
//
// None: bench/reduction makes the inputs, which have the shapes and ranges that the equations declare.
//
// # Source
//
// The samplers and models are those of Yang, "Simplifying Multiple-Statement Reductions with the Polyhedral Model", 2020.
package hand

import "math"

// Program computes outputs by name from sizes and inputs by name.
type Program func(sizes map[string]int64, inputs map[string]any) map[string]any

// Programs has the programs by the names of their equations.
var Programs = map[string]Program{"gmm_gs": gmmGibbs, "lda_gs": ldaGibbs, "dmm_gs": dmmGibbs, "lbp": beliefs, "coxph": cox}

func floats(inputs map[string]any, name string) []float64 { return inputs[name].([]float64) }
func ints(inputs map[string]any, name string) []int64     { return inputs[name].([]int64) }

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

func lognormal(x, mean, variance float64) float64 {
	d := x - mean
	return -0.5 * (d*d/variance + math.Log(2*math.Pi*variance))
}

// normalise takes the logarithm of the sum of exponentials from logs.
func normalise(logs []float64) {
	most, sum := math.Inf(-1), 0.0
	for _, x := range logs {
		most = math.Max(most, x)
	}
	for _, x := range logs {
		sum += math.Exp(x - most)
	}
	z := most + math.Log(sum)
	for k := range logs {
		logs[k] -= z
	}
}

// draw returns the least place whose running weight reaches u times the whole. It changes logs.
func draw(logs []float64, u float64) int64 {
	most, whole := math.Inf(-1), 0.0
	for _, x := range logs {
		most = math.Max(most, x)
	}
	for k, x := range logs {
		logs[k] = math.Exp(x - most)
		whole += logs[k]
	}
	running := 0.0
	for k, x := range logs {
		if running += x; running >= u*whole && x > 0 {
			return int64(k)
		}
	}
	return int64(len(logs) - 1)
}

// gmmGibbs is a Gibbs sweep over the components of points.
func gmmGibbs(sizes map[string]int64, inputs map[string]any) map[string]any {
	obs, old, u := floats(inputs, "obs"), ints(inputs, "z_old"), floats(inputs, "u")
	sum, count, logs := make([]float64, sizes["K"]), make([]float64, sizes["K"]), make([]float64, sizes["K"])
	for i, m := range old {
		sum[m] += obs[i]
		count[m]++
	}
	z := make([]int64, len(obs))
	for k, x := range obs {
		sum[old[k]] -= x
		count[old[k]]--
		for m := range logs {
			logs[m] = lognormal(x, sum[m]/(count[m]+1), 1/(count[m]+1)+1)
		}
		normalise(logs)
		z[k] = draw(logs, u[k])
		sum[z[k]] += x
		count[z[k]]++
	}
	return map[string]any{"z": z}
}

// ldaGibbs is a Gibbs sweep over the topics of words.
func ldaGibbs(sizes map[string]int64, inputs map[string]any) map[string]any {
	word, doc, old, u := ints(inputs, "w"), ints(inputs, "doc"), ints(inputs, "z_old"), floats(inputs, "u")
	alpha, beta := floats(inputs, "alpha")[0], floats(inputs, "beta")[0]
	topics := sizes["K"]
	byWord, byDoc, all := make([]float64, sizes["V"]*topics), make([]float64, sizes["D"]*topics), make([]float64, topics)
	for i, t := range old {
		byWord[word[i]*topics+t]++
		byDoc[doc[i]*topics+t]++
		all[t]++
	}
	logs, z := make([]float64, topics), make([]int64, len(word))
	whole := float64(sizes["V"]) * beta
	for k := range word {
		of, in := byWord[word[k]*topics:][:topics], byDoc[doc[k]*topics:][:topics]
		of[old[k]]--
		in[old[k]]--
		all[old[k]]--
		for t := range logs {
			logs[t] = math.Log(of[t]+beta) - math.Log(all[t]+whole) + math.Log(in[t]+alpha)
		}
		normalise(logs)
		t := draw(logs, u[k])
		z[k] = t
		of[t]++
		in[t]++
		all[t]++
	}
	return map[string]any{"z": z}
}

// dmmGibbs is a Gibbs sweep over the components of documents.
func dmmGibbs(sizes map[string]int64, inputs map[string]any) map[string]any {
	word, doc, old, u := ints(inputs, "word"), ints(inputs, "doc"), ints(inputs, "y_old"), floats(inputs, "u")
	base, alpha, gamma := floats(inputs, "base"), floats(inputs, "alpha")[0], floats(inputs, "gamma")[0]
	kinds, words := sizes["K"], sizes["A"]
	own, counts := make([]float64, int64(len(old))*words), make([]float64, kinds*words)
	for w, d := range doc {
		own[d*words+word[w]]++
	}
	docs, logs, y := make([]float64, kinds), make([]float64, kinds), make([]int64, len(old))
	add := func(d int, k int64, sign float64) {
		docs[k] += sign
		of := own[int64(d)*words:][:words]
		for a := range of {
			counts[k*words:][:words][a] += sign * of[a]
		}
	}
	for d, k := range old {
		add(d, k, 1)
	}
	for i := range old {
		add(i, old[i], -1)
		of := own[int64(i)*words:][:words]
		for k := range logs {
			n, b := counts[int64(k)*words:][:words], base[int64(k)*words:][:words]
			var lik, gn, gm, tn, tm float64
			for a, o := range of {
				lik += b[a] * o
				gn += lgamma(n[a] + gamma)
				gm += lgamma(n[a] + o + gamma)
				tn += n[a]
				tm += n[a] + o
			}
			logs[k] = lik + gm - gn + lgamma(tn+float64(words)*gamma) - lgamma(tm+float64(words)*gamma) +
				math.Log((docs[k]+alpha)/(float64(len(old)-1)+float64(kinds)*alpha))
		}
		normalise(logs)
		y[i] = draw(logs, u[i])
		add(i, y[i], 1)
	}
	return map[string]any{"y": y}
}

// beliefs passes messages on a grid.
func beliefs(sizes map[string]int64, inputs map[string]any) map[string]any {
	in, phi, psi := floats(inputs, "min"), floats(inputs, "phi"), floats(inputs, "psi")
	states, sides := int(sizes["K"]), int(sizes["D"])
	out := make([]float64, len(in))
	others := make([]float64, sides*states)
	running := make([]float64, states)
	for p := range int(sizes["Y"] * sizes["X"]) {
		from, own, to := in[p*sides*states:][:sides*states], phi[p*states:][:states], out[p*sides*states:][:sides*states]
		for a := range running {
			running[a] = own[a]
		}
		for d := range sides {
			o, m := others[d*states:][:states], from[d*states:][:states]
			for a := range running {
				o[a] = running[a]
				running[a] *= m[a]
			}
		}
		for a := range running {
			running[a] = 1
		}
		for d := sides - 1; d >= 0; d-- {
			o, m := others[d*states:][:states], from[d*states:][:states]
			for a := range running {
				o[a] *= running[a]
				running[a] *= m[a]
			}
		}
		for d := range sides {
			mo := to[d*states:][:states]
			for a, v := range others[d*states:][:states] {
				row := psi[a*states:][:states]
				for b := range mo {
					mo[b] += v * row[b]
				}
			}
			first := mo[0]
			for b := range mo {
				mo[b] /= first
			}
		}
	}
	return map[string]any{"out": out}
}

// cox is the gradient and the Hessian of a partial likelihood, subjects sorted by time.
func cox(sizes map[string]int64, inputs map[string]any) map[string]any {
	x, beta, events := floats(inputs, "x"), floats(inputs, "beta"), floats(inputs, "ev")
	n := len(beta)
	g, h := make([]float64, n), make([]float64, n*n)
	s0, s1, s2 := 0.0, make([]float64, n), make([]float64, n*n)
	for i := len(events) - 1; i >= 0; i-- {
		row := x[i*n:][:n]
		eta := 0.0
		for a, v := range row {
			eta += v * beta[a]
		}
		r := math.Exp(eta)
		s0 += r
		for a, v := range row {
			s1[a] += r * v
		}
		for a, v := range row {
			second, to := s2[a*n:][:n], h[a*n:][:n]
			g[a] += events[i] * (v - s1[a]/s0)
			for b, w := range row {
				second[b] += r * v * w
				to[b] += events[i] * (second[b]/s0 - s1[a]*s1[b]/(s0*s0))
			}
		}
	}
	return map[string]any{"g": g, "h": h}
}

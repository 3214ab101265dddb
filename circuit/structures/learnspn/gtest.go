package learnspn

// gTestThreshold is the default of Options.Threshold for GTest.
const gTestThreshold = 5

// gTest reports which pairs of a slice's variables are dependent: those whose G statistic,
// 2 Σ n log(n·N / (row·column)), exceeds twice the threshold for each degree of freedom. A
// variable that is constant in the slice is independent of all others.
func gTest(p *pairCounter, threshold float64) func(i, j int) bool {
	var table []float64
	return func(i, j int) bool {
		a, b := p.s.all[p.s.vars[i]].count, p.s.all[p.s.vars[j]].count
		if len(table) < a*b {
			table = make([]float64, a*b)
		}
		nats, total, freedom := information(p.joint(i, j, table), a, b)
		return freedom > 0 && nats*total > threshold*float64(freedom)
	}
}

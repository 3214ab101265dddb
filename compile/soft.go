package compile

import "github.com/pce-engine/pce/layers"

// hasBeside reports whether a vector has an input for evidence beside it: one without a
// table, which has no rows for ranges of values.
func (s *state) hasBeside(v int32) bool {
	n := &s.nodes[v]
	return s.opts.Soft > 0 && n.kind == layers.InputVector && !n.beside && s.graph.Nodes[n.id].Leaf.Codes() == 0
}

// appendFactor appends a vector to the factors of an operand, with the vector beside it.
func (s *state) appendFactor(to []int32, v int32) []int32 {
	to = append(to, v)
	if s.hasBeside(v) {
		to = append(to, v+1)
	}
	return to
}

// besideColumn returns the column of the evidence about the values of another one.
func (s *state) besideColumn(values int32) int32 {
	of := s.prog.Columns[values].Var
	c := s.column(of, 1) // a variable has values or codes, so no other column has this key
	s.prog.Columns[c].Beside = true
	return c
}

// needSoft gives the columns with codes their rows of evidence: as many as the options say,
// or one for each of the columns that share a table, so that one row of cells always finds room.
func (s *state) needSoft() {
	if s.opts.Soft == 0 {
		return
	}
	p := s.prog
	sharing, most := make([]int, len(p.Columns)), s.opts.Soft
	for _, c := range p.SoftGroups() {
		sharing[c]++
		most = min(max(most, sharing[c]), layers.MaxSoft)
	}
	for i := range p.Columns {
		if c := &p.Columns[i]; c.Codes > 0 {
			c.Soft = int32(most)
		}
	}
}

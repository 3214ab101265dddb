package compile

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// tie finds the owner of every shared parameter and lays the inputs' areas out.
func tie(s *state) (string, error) {
	p := s.prog
	s.pmap = &ParamMap{graph: s.graph, prog: p}
	sums := make(map[circuit.NodeID]int32)
	inputs := make(map[circuit.NodeID]int32)
	tied := 0
	own := func(first map[circuit.NodeID]int32, id circuit.NodeID, def int32) (int32, bool) {
		key := s.graph.Owner(id)
		if o, ok := first[key]; ok {
			tied++
			return o, false
		}
		first[key] = def
		return def, true
	}
	for i := range p.Vectors {
		v := &p.Vectors[i]
		id := s.nodes[i].id
		key := id
		if id != circuit.None {
			key = s.graph.Owner(id)
		}
		switch v.Kind {
		case layers.SumVector:
			owner, first := own(sums, id, v.Def)
			p.Sums[v.Def].Owner = owner
			if first {
				s.pmap.entries = append(s.pmap.entries, entry{node: key, kind: circuit.Sum, def: v.Def})
			}
		case layers.InputVector:
			if s.nodes[i].beside { // its rows are never part of a model
				p.Inputs[v.Def].Owner = v.Def
				continue
			}
			owner, first := own(inputs, id, v.Def)
			p.Inputs[v.Def].Owner = owner
			if first {
				s.pmap.entries = append(s.pmap.entries, entry{node: key, kind: circuit.Input, def: v.Def})
			}
		}
	}
	owners := len(s.pmap.entries)
	for _, e := range s.pmap.entries {
		if e.kind == circuit.Input && p.Inputs[e.def].Family.NumParams() == 0 {
			owners-- // an indicator, which has none
		}
	}
	return fmt.Sprintf("%d owners of parameters, %d nodes tied to them", owners, tied), nil
}

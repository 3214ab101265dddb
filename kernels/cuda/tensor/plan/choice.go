package plan

import "github.com/pce-engine/pce/kernels/ptx/tensor"

// either adds launches to a list: those on wide tiles that wide adds, or if the model of a
// card says that these take longer, those that others adds. It reports whether they are
// the wide ones; what wide has done to the tables otherwise is the caller's to undo. A card
// of one multiprocessor, as tests have it, always gets the wide ones.
func (s *Schedule) either(works *[]Work, wide, others func()) bool {
	if s.Tables.Processors == 1 {
		wide()
		return true
	}
	n, lists, operands, formed := len(*works), len(s.Lists), s.operandsLen, s.formedLen
	others()
	most := s.seconds((*works)[n:])
	*works, s.Lists = (*works)[:n], s.Lists[:lists]
	wide()
	if s.seconds((*works)[n:]) <= most {
		return true
	}
	*works, s.Lists, s.operandsLen, s.formedLen = (*works)[:n], s.Lists[:lists], operands, formed
	others()
	return false
}

// seconds is the time that launches take one after another, by the model of a card with
// as many multiprocessors as the program is for.
func (s *Schedule) seconds(works []Work) (t float64) {
	r := rates["h200"]
	r.Processors = s.Tables.Processors
	if s.card == nil {
		s.card = newOccupancy(tensor.Variant{Block: s.Tables.Size, Mixed: s.Tables.Mixed, Major: 9})
	}
	read := reads{}
	for _, w := range works {
		t += s.cost(w, s.Tables.Rows, r, s.card, read).Expected
	}
	return t
}

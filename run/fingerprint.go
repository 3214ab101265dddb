package run

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit/structures/equations"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
)

// KernelPathFact is the name of the fact that says which kernels computed a run.
const KernelPathFact = "kernel path"

// fingerprint returns what the bits of the run depend on: its settings, its rows
// and the kernels that compute it. Files and numbers of devices do not count: the
// same rows may come from elsewhere, and one card computes what another one does.
func (r *training) fingerprint(ctx context.Context, f Flows) ([]em.Fact, error) {
	facts := r.opts.settings()
	if s := &r.opts.Structure; s.Kind == "equations" && s.Graph == nil {
		source, err := s.Equations.read()
		if err != nil {
			return nil, err
		}
		digest, err := equations.Digest(s.Equations.File, source)
		if err != nil {
			return nil, err
		}
		facts = append(facts[:len(facts):len(facts)], em.Fact{Name: "equations", Value: hex.EncodeToString(digest[:shownDigest])})
	}
	rows, err := rowsOf(ctx, em.TrainRowsFact, r.plan.Train, false)
	if err != nil {
		return nil, err
	}
	facts = append(facts[:len(facts):len(facts)], rows)
	if o := r.em(); o.Valid != nil {
		if rows, err = rowsOf(ctx, em.ValidRowsFact, o.Valid, !o.KeepsBest()); err != nil {
			return nil, err
		}
		facts = append(facts, rows)
	}
	if d := r.discriminative(); d.Share > 0 { // free, since settings name the share and the class
		facts = append(facts, em.Fact{Name: em.ObjectiveFact, Value: fmt.Sprintf("variable %d given the others, a share of %v", d.Class+1, d.Share), Free: true})
	}
	k := f.Kernels()
	kind, _, _ := strings.Cut(k.Name, ":")
	facts = append(facts, em.Fact{Name: "kind of device", Value: kind}, em.Fact{Name: KernelPathFact, Value: k.KernelPath})
	if used := f.PrecisionUsed(); used != "" { // workers say it once they have begun
		facts = append(facts, em.Fact{Name: "precision used", Value: used})
	}
	return facts, nil
}

// shownDigest is how many bytes of a digest a fact shows: rows change by
// accident.
const shownDigest = 8

func rowsOf(ctx context.Context, name string, src dataset.Source, free bool) (em.Fact, error) {
	digest, err := dataset.Digest(ctx, src)
	return em.Fact{Name: name, Value: fmt.Sprintf("%d (digest %s)", src.Rows(), hex.EncodeToString(digest[:shownDigest])), Free: free}, err
}

// settings returns the settings that the run is made of.
func (o *TrainOptions) settings() []em.Fact {
	if o.Settings != nil {
		return o.Settings
	}
	s := o.Structure
	s.Graph, s.File, s.Equations.File, s.Valid = nil, "", "", nil // the program's digest tells circuits apart
	s.HMM.Leaf, s.PD.Leaf, s.RATSPN.Leaf = nil, nil, nil
	s.LearnSPN.Leaves, s.LearnSPN.Valid = nil, nil
	s.LearnSPN.Workers, s.HCLT.ChowLiu.Workers = 0, 0 // they do not change the result
	e := o.em()
	return append(e.Facts(),
		em.Fact{Name: "discriminative", Value: strconv.FormatFloat(o.Discriminative, 'g', -1, 64)},
		em.Fact{Name: "structure", Value: fmt.Sprintf("%+v", s)},
		em.Fact{Name: "compile", Value: fmt.Sprintf("%+v", o.Compile)},
		em.Fact{Name: "mixed", Value: strconv.FormatBool(o.Mixed)},
	)
}

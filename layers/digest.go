package layers

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
)

// Digest names a program in caches and on the bus: the SHA-256 of its contents.
func (p *Program) Digest() [32]byte {
	h := sha256.New()
	d := digester{h: h}
	d.ints(int64(p.NumVars), int64(p.BlockSize), int64(p.Root), int64(p.NodeBlocks), int64(p.ElementBlocks),
		int64(p.ParamBlocks), p.NumParams, int64(len(p.Columns)), int64(len(p.Vectors)), int64(len(p.Inputs)), int64(len(p.Sums)),
		int64(len(p.Stored)), int64(len(p.Elements)), int64(len(p.Layers)))
	for _, c := range p.Columns {
		d.ints(int64(c.Var), int64(c.Codes), int64(c.Slot))
		if c.Soft > 0 {
			d.ints(int64(c.Soft))
		}
	}
	for _, v := range p.Vectors {
		d.ints(int64(v.Kind), int64(v.Def), int64(v.First), int64(v.Count), int64(v.Units), int64(v.Depth))
	}
	for _, in := range p.Inputs {
		family := fmt.Sprintf("%s%+v", in.Family.Name(), in.Family) // the fixed settings included
		d.ints(int64(in.Vector), int64(in.Column), int64(in.Codes), in.Table, in.Params, int64(in.Owner), int64(len(family)))
		h.Write([]byte(family))
		if in.Exps >= 0 {
			d.ints(in.Exps)
		}
	}
	for i := range p.Sums {
		s := &p.Sums[i]
		d.ints(int64(s.Vector), int64(s.ElemLo), int64(s.ElemHi), int64(s.Param), int64(s.NumBlocks), int64(s.Owner))
		d.int32s(s.Fan)
	}
	for _, s := range p.Stored {
		d.ints(int64(s.Vector), int64(s.Element))
	}
	for _, e := range p.Elements {
		d.ints(int64(e.First), int64(e.Count), int64(e.FactorLo), int64(e.FactorHi))
	}
	d.int32s(p.Factors)
	for i := range p.Layers {
		l := &p.Layers[i]
		d.ints(int64(l.Depth), int64(len(l.Products)), int64(len(l.Sums)), int64(len(l.Elements)))
		for _, q := range l.Products {
			d.ints(int64(q.MaxFactors))
			d.int32s(q.ElementIDs)
			d.int32s(q.FactorIDs)
		}
		for _, q := range l.Sums {
			d.ints(int64(q.MaxChildren))
			d.int32s(q.NodeIDs)
			d.int32s(q.ChildIDs)
			d.int32s(q.ParamIDs)
		}
		for _, q := range l.Elements {
			d.ints(int64(q.MaxParents))
			d.int32s(q.ElementIDs)
			d.int32s(q.ParentIDs)
			d.int32s(q.ParentParamIDs)
		}
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

type digester struct {
	h   hash.Hash
	buf []byte
}

func (d *digester) ints(xs ...int64) {
	d.buf = d.buf[:0]
	for _, x := range xs {
		d.buf = binary.LittleEndian.AppendUint64(d.buf, uint64(x))
	}
	d.h.Write(d.buf)
}

func (d *digester) int32s(xs []int32) {
	d.ints(int64(len(xs)))
	d.buf = d.buf[:0]
	for _, x := range xs {
		d.buf = binary.LittleEndian.AppendUint32(d.buf, uint32(x))
	}
	d.h.Write(d.buf)
}

package spn

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// Units says that the cells of a variable are stored as their distance from an offset in units of a scale.
type Units struct {
	Variable      int
	Offset, Scale float64
}

// HiSPN returns the query that the program answers and its graph as text, as they are when the space of values is chosen:
// imported, with equal operations once, and folded.
//
//	joint_query {variables 2, input f32 columns, missing nan, marginals, error absolute-log 1e-09}
//	graph {
//	  %0 = categorical x0 {0.75 0.25} : probability
//	  %1 = gaussian x1 {mean 0, deviation 1} : probability
//	  %2 = product %0 %1 : probability
//	  %3 = sum 0.5 %2 0.5 %1 : probability
//	  root %3
//	}
//
// Leaves with codes are categorical, with the probability of each. A root for each class is a line of its own; zero is one
// whose likelihood is 0 for every row. The text is written, not read; numbers are the shortest that give the same
// float64. The parameters of leaves are in the units in which cells are stored; units lists those variables where these are not the ones of
// rows, each of which becomes a line before the graph:
//
//	cells x1 {offset 12, scale 2.5}
func (p *Program) HiSPN(units ...Units) string {
	var b strings.Builder
	x := p.Module.Inputs[0]
	missing := "nan"
	if x.Type == simt.U8 {
		missing = strconv.Itoa(MissingByte)
	}
	fmt.Fprintf(&b, "joint_query {variables %d, input %v %v, missing %s, marginals", x.Width, x.Type, x.Layout, missing)
	if c := p.choice; c != nil {
		if most := c.most(); most == 0 {
			b.WriteString(", error any")
		} else {
			fmt.Fprintf(&b, ", error %s %v", cmp.Or(c.Error, AbsoluteLog), most)
		}
	}
	b.WriteString("}\n")
	for _, u := range units {
		fmt.Fprintf(&b, "cells x%d {offset %v, scale %v}\n", u.Variable, u.Offset, u.Scale)
	}
	b.WriteString("graph {\n")
	for i := range p.code.ops {
		o := &p.code.ops[i]
		if !o.used {
			continue
		}
		fmt.Fprintf(&b, "  %%%d = ", i)
		switch {
		case o.kind == circuit.Input:
			kind, attributes := o.leafText()
			fmt.Fprintf(&b, "%s x%d {%s}", kind, o.variable, attributes)
		case len(o.args) == 0:
			b.WriteString("constant 1")
		case o.kind == circuit.Product:
			b.WriteString("product")
			for _, a := range o.args {
				fmt.Fprintf(&b, " %%%d", a)
			}
		default:
			b.WriteString("sum")
			weights := o.weightsGiven()
			for k, a := range o.args {
				fmt.Fprintf(&b, " %v %%%d", weights[k], a)
			}
		}
		b.WriteString(" : probability\n")
	}
	for _, r := range p.code.roots {
		if r == nowhere {
			b.WriteString("  root zero\n")
		} else {
			fmt.Fprintf(&b, "  root %%%d\n", r)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// leafText returns the kind of a leaf in texts, and its parameters.
func (o *op) leafText() (kind, attributes string) {
	switch {
	case o.gaussian:
		return "gaussian", fmt.Sprintf("mean %v, deviation %v", o.mean, o.sd)
	case o.histograms:
		return "histogram", fmt.Sprintf("breaks%s, densities%s, outside %v", numbers(o.histogram.Breaks), numbers(o.table), o.histogram.Floor)
	}
	return "categorical", strings.TrimPrefix(numbers(o.table), " ")
}

// numbers returns each number behind a blank.
func numbers(list []float64) string {
	var b []byte
	for _, x := range list {
		b = strconv.AppendFloat(append(b, ' '), x, 'g', -1, 64)
	}
	return string(b)
}

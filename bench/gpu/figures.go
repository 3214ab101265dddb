package main

import (
	"fmt"
	"slices"
	"strings"
)

// figure2Latents makes the PD of Figure 2: 143 M edges as PyJuice counts them, the
// nearest to its 150 M with blocks that tensor cores take.
const figure2Latents = 208

// kinds are the kinds of layers that Figure 2 tells apart, with the kernels that
// compute them. Products are formed where sums read them: what stays of their layers
// are those that are stored, or sent down to several parents.
var kinds = []struct {
	name    string
	kernels []string
}{
	{"input layers", []string{"leaf", "leaf_move", "leaf_gather", "leaf_count", "leaf_update", "leaf_visits"}},
	{"product layers", []string{"stored", "gather", "fit"}},
	{"sum layers", []string{"forward", "forward_resident", "forward_wide", "backward", "backward_wide", "move", "move_wide", "count", "count_wide"}},
}

// kindOf is the kind of layer that a kernel computes; the rest serves all of them.
func kindOf(kernel string) string {
	for _, k := range kinds {
		if slices.Contains(k.kernels, kernel) {
			return k.name
		}
	}
	return "the rest"
}

// figure2 is the time of a step by kind of layer, forward and backward.
func (r *report) figure2() {
	name := fmt.Sprintf("kernels of pd-%d", figure2Latents)
	var m measured
	one, ok := r.part(name)
	if !ok || !one.result("kernels", &m) {
		return
	}
	r.title(fmt.Sprintf("Figure 2: a PD of %.3g M sum edges%s, microseconds of a step by kind of layer", float64(m.Edges)/1e6, r.mark(one)),
		"| | forward | backward and update | share |")
	var all float64
	forward, backward := map[string]float64{}, map[string]float64{}
	for _, k := range m.Kernels {
		all += k.Seconds
		if k.Phase == "forward" {
			forward[kindOf(k.Kernel)] += k.Seconds
		} else {
			backward[kindOf(k.Kernel)] += k.Seconds
		}
	}
	for _, k := range append(slices.Clip(kinds), struct {
		name    string
		kernels []string
	}{"the rest", nil}) {
		fmt.Fprintf(r.w, "| %s | %.4g | %.4g | %.0f %% |\n", k.name, 1e6*forward[k.name], 1e6*backward[k.name], 100*(forward[k.name]+backward[k.name])/all)
	}
}

// figure7 is the time of the kernels on sums over the share of blocks that is kept.
func (r *report) figure7() {
	type point struct {
		kept              int
		forward, backward float64
		mark              string
	}
	var points []point
	for _, dropped := range sparseDropped {
		var m measured
		one, ok := r.part(sparseName(dropped))
		if !ok || !one.result("kernels", &m) {
			continue
		}
		p := point{kept: 100 - dropped, mark: r.mark(one)}
		for _, k := range m.Kernels {
			switch {
			case kindOf(k.Kernel) != "sum layers":
			case strings.HasPrefix(k.Kernel, "forward"):
				p.forward += k.Seconds
			default:
				p.backward += k.Seconds
			}
		}
		points = append(points, p)
	}
	if len(points) == 0 {
		return
	}
	r.title("Figure 7: a block-sparse layer, microseconds of its sums in a step", "| blocks kept | forward | of dense | backward and update | of dense |")
	for _, p := range points {
		fmt.Fprintf(r.w, "| %d %%%s | %.4g | %s | %.4g | %s |\n", p.kept, p.mark, 1e6*p.forward, share(p.forward, points[0].forward, points[0].kept),
			1e6*p.backward, share(p.backward, points[0].backward, points[0].kept))
	}
}

// share is a time over that of the dense layer, if it was measured.
func share(x, dense float64, kept int) string {
	if kept != 100 || dense == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x/dense)
}

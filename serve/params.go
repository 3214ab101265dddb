package serve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pce-engine/pce/serve/oip"
)

// protocol parameters of a request, which every query takes.
var protocolParams = map[string]bool{"query": true, "timeout": true, "binary_data_output": true}

// params reads the parameters of the query into the job: those of the request, else the
// defaults; a parameter without a default is drawn. Names that neither the query nor the
// protocol has, types that do not fit and numbers out of range are errors that say what is
// wanted.
func (c *call) params() error {
	for key := range c.req.Params {
		known := protocolParams[key]
		for _, p := range c.query.Params {
			known = known || p.Name == key
		}
		if !known {
			return fail(ErrRequest, "parameters: %q is not known; query %q takes %v", clip(key), c.query.Name, c.paramNames())
		}
	}
	if _, ok := c.req.Params["binary_data_output"].(bool); !ok && c.req.Params["binary_data_output"] != nil {
		return fail(ErrRequest, "parameters: binary_data_output is %s; want true or false", shown(c.req.Params["binary_data_output"]))
	}
	if c.repeat = 1; len(c.query.Params) > 0 {
		c.job.params = make(oip.Params, len(c.query.Params))
	}
	for _, p := range c.query.Params {
		given, asked := c.req.Params[p.Name]
		like, x := p.Default, p.Default
		if like == nil {
			like, x = uint64(0), rand.Uint64()>>11 // exact in JSON numbers, whatever program reads them
		}
		if asked {
			var ok bool
			if x, ok = convert(given, like); !ok {
				return fail(ErrRequest, "parameters: %s is %s; want %s", p.Name, shown(given), kindOf(like))
			}
		}
		if n, ok := convert(x, 0.0); ok && (p.Min != 0 || p.Max != 0) {
			if f, _ := n.(float64); !(f >= p.Min && f <= p.Max) {
				return fail(ErrRequest, "parameters: %s is %v; want %.15g to %.15g", p.Name, x, p.Min, p.Max)
			}
		}
		if name, ok := x.(string); ok && p.Values != nil {
			if p.Resolve != nil {
				x = p.Resolve(name)
			}
			if !slices.Contains(p.Values, x.(string)) {
				return fail(ErrRequest, "parameters: %s is %q; want one of %s", p.Name, clip(name), listed(p.Values))
			}
		}
		if p.Model {
			if c.other == nil {
				return fail(ErrRequest, "parameters: %s is empty; give the name of a model of this server", p.Name)
			}
			x = c.other.model
		}
		c.job.params[p.Name] = x
		if p.Name == c.query.Repeat {
			n, _ := x.(int64)
			if n < 1 || n > math.MaxInt32 {
				return fail(ErrRequest, "parameters: %s is %v; want 1 or more", p.Name, x)
			}
			c.repeat = int(n)
		}
	}
	return nil
}

// plan returns the operations of a row, and notes the shapes of outputs that parameters choose.
func (c *call) plan() (perRow int64, err error) {
	perRow = c.query.Flops
	if c.query.Plan != nil {
		if perRow, err = c.query.Plan(c.job.params); err != nil {
			return 0, fail(ErrRequest, "parameters: %v", err)
		}
	}
	for k := range c.query.Outputs {
		if of := c.query.Outputs[k].ShapeOf; of != nil {
			if c.job.shapes == nil {
				c.job.shapes = make([][]int64, len(c.query.Outputs))
			}
			c.job.shapes[k] = of(c.job.params)
		}
	}
	return perRow, nil
}

// listed are the values of a parameter for a message, which for columns of a model may be thousands and as long as their names:
// the first of them, and how many more metadata lists.
func listed(values []string) string {
	const most = 8
	var list []string
	for _, v := range values[:min(most, len(values))] {
		list = append(list, clip(v))
	}
	text := fmt.Sprintf("%q", list)
	if n := len(values) - most; n > 0 {
		text += fmt.Sprintf(" and %d more, which the model's metadata lists", n)
	}
	return text
}

func (c *call) paramNames() []string {
	names := []string{"query", "timeout", "binary_data_output"}
	for _, p := range c.query.Params {
		names = append(names, p.Name)
	}
	return names
}

// convert returns x with the type of like, and whether it is a value of that type. JSON and
// protobuf write the same number as different types, so whole floats are integers and integers
// are floats; texts and booleans are only themselves.
func convert(x, like any) (any, bool) {
	switch like.(type) {
	case int64:
		switch x := x.(type) {
		case int64:
			return x, true
		case uint64:
			return int64(x), x <= math.MaxInt64
		case float64:
			return int64(x), x == math.Trunc(x) && math.Abs(x) <= 1<<53
		}
	case uint64:
		switch x := x.(type) {
		case uint64:
			return x, true
		case int64:
			return uint64(x), x >= 0
		case float64:
			return uint64(max(0, x)), x == math.Trunc(x) && x >= 0 && x <= 1<<53
		}
	case float64:
		switch x := x.(type) {
		case float64:
			return x, true
		case int64:
			return float64(x), true
		case uint64:
			return float64(x), true
		}
	case bool:
		b, ok := x.(bool)
		return b, ok
	case string:
		s, ok := x.(string)
		return s, ok
	}
	return nil, false
}

func kindOf(like any) string {
	switch like.(type) {
	case int64:
		return "an integer"
	case uint64:
		return "an integer of 0 or more"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	}
	return "a string"
}

// answers are the outputs that a request gets.
type answers struct {
	places []int // in Query.Outputs
	types  []oip.Datatype
}

// unasked returns what requests get that name no outputs.
func unasked(list []Query) []answers {
	out := make([]answers, len(list))
	for i := range list {
		for k := range list[i].Outputs {
			if o := &list[i].Outputs[k]; !o.OnRequest {
				out[i].places, out[i].types = append(out[i].places, k), append(out[i].types, o.Datatype)
			}
		}
	}
	return out
}

// wanted finds the outputs that the request gets, by their places in the query, and their
// datatypes. A request that names none gets all but those on request. Unknown names, one that
// is asked for twice and datatypes that are not numeric are errors.
func (c *call) wanted() error {
	if len(c.req.Outputs) == 0 {
		c.answers = c.version.unasked[c.job.query]
		return nil
	}
	for i := range c.req.Outputs {
		out, k := &c.req.Outputs[i], -1
		for j := range c.query.Outputs {
			if c.query.Outputs[j].Name == out.Name {
				k = j
			}
		}
		if k < 0 {
			var names []string
			for j := range c.query.Outputs {
				names = append(names, c.query.Outputs[j].Name)
			}
			return fail(ErrRequest, "output %q: name: query %q gives %v", clip(out.Name), c.query.Name, names)
		}
		for j := range i {
			if c.req.Outputs[j].Name == out.Name {
				return fail(ErrRequest, "output %q: asked for twice", out.Name)
			}
		}
		d := c.query.Outputs[k].Datatype
		for key, x := range out.Params {
			switch key {
			case "binary_data":
				if _, ok := x.(bool); !ok {
					return fail(ErrRequest, "output %q: parameters: binary_data is %s; want true or false", out.Name, shown(x))
				}
			case "datatype":
				s, _ := x.(string)
				if d = oip.Datatype(s); d.Size() <= 0 {
					return fail(ErrRequest, "output %q: parameters: datatype is %s; want a datatype of numbers, such as FP64", out.Name, shown(x))
				}
			default:
				return fail(ErrRequest, "output %q: parameters: %q is not known; datatype and binary_data are", out.Name, clip(key))
			}
		}
		c.answers.places, c.answers.types = append(c.answers.places, k), append(c.answers.types, d)
	}
	return nil
}

package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// acquire takes the version that a request asks for, and that of the model which a parameter of its query names. release gives both
// back. A failure is counted: as of the model that is asked where that one is there.
func (c *call) acquire(req *oip.Request) error {
	c.req = req
	v, err := c.server.acquire(&c.job, req)
	if err != nil {
		c.server.count(err)
		return err
	}
	query, param, name := v.named(req)
	if name == "" {
		c.version = v
		return nil
	}
	stats := v.stats
	other, opening, err := c.server.models.take(name, "")
	if opening != nil {
		// It may need the memory of the model that is asked, which must not be held while it is opened.
		v.release()
		c.place.end()
		c.place = admission{}
		v, other, err = c.together(name)
	} else if err != nil {
		v.release()
	}
	if err != nil {
		status, _ := statusOf(err)
		stats.Request(query, status, 0, time.Since(c.job.seen), 0, 0)
		return fmt.Errorf("parameters: %s: %w", param, err)
	}
	c.version, c.other, c.job.other = v, other, other
	return nil
}

// release gives back what acquire took.
func (c *call) release() {
	c.version.release()
	if c.other != nil {
		c.other.release()
	}
}

// named is the query of a request, its parameter that names a model, and that name; all empty where there is none.
func (v *version) named(req *oip.Request) (query, param, name string) {
	i, ok := v.query(text(req.Params["query"]))
	if !ok {
		return "", "", ""
	}
	for _, p := range v.queries[i].Params {
		if p.Model {
			name, _ = req.Params[p.Name].(string)
			return v.queries[i].Name, p.Name, name
		}
	}
	return "", "", ""
}

// together waits until another model is in memory, and takes it with the model that is asked. If the latter has left for it, both may
// not have room: the request fails, since to wait for that one would have the other leave.
func (c *call) together(name string) (v, other *version, err error) {
	r := c.server.models
	ctx, cancel := context.WithDeadline(c.job.ctx, c.job.end)
	defer cancel()
	if other, err = r.acquire(ctx, name, ""); err != nil {
		return nil, nil, err
	}
	v, opening, err := r.take(c.req.Model, c.req.Version)
	if opening != nil {
		err = &retryError{fail(ErrUnavailable, "model %q left memory for it; try again later, or give models more memory", c.req.Model), retryOpen}
	}
	if err != nil {
		other.release()
		return nil, nil, err
	}
	return v, other, nil
}

// acquire returns the version that a request asks for, which the caller releases.
func (s *Server) acquire(j *job, req *oip.Request) (*version, error) {
	v, opening, err := s.models.take(req.Model, req.Version)
	if opening == nil {
		return v, err
	}
	ctx, cancel := context.WithDeadline(j.ctx, j.end)
	defer cancel()
	return s.models.acquire(ctx, req.Model, req.Version)
}

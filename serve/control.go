package serve

import "context"

// control loads or unloads a model at a request's wish, where that is allowed.
func (s *Server) control(ctx context.Context, name string, load bool) error {
	if !s.opts.ModelControl {
		return fail(ErrForbidden, "this server does not load and unload models by request; start it with model control")
	}
	if !load {
		return s.models.unload(name)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	return s.models.load(ctx, name)
}

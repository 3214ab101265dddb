package serve

import "time"

// watch looks at the files of loaded models until the server is closed, and opens
// those again that changed. A file must have been the same at two looks in a row, so
// that one which is being written in place is left alone.
func (r *repository) watch() {
	tick := time.NewTicker(r.opts.ReloadEvery)
	defer tick.Stop()
	seen := map[*entry]fileStamp{}
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		for _, e := range r.models {
			now := stampOf(e.Path)
			r.mu.Lock()
			if changed := e.current != nil && !e.file.same(now); changed && e.opening == nil && !r.closing && seen[e].same(now) {
				r.opts.Log.Info("model file changed", "model", e.Name, "path", e.Path)
				r.start(e)
			}
			r.mu.Unlock()
			seen[e] = now
		}
	}
}

package serve

import "time"

// watch looks at the files of loaded models until the server is closed, and opens
// those again that changed. Another file of the same name is whole, as it was renamed;
// one that is being written in place must have been the same at two looks in a row.
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
			changed := e.current != nil && !e.file.same(now)
			if changed && e.opening == nil && !r.closing && (e.file.replaced(now) || seen[e].same(now)) {
				r.opts.Log.Info("model file changed", "model", e.Name, "path", e.Path)
				r.start(e)
			}
			r.mu.Unlock()
			seen[e] = now
		}
	}
}

package cluster

import "context"

// window is how many requests of a Map are under way at a time.
const window = 64

// Map gives the requests that next returns to the workers' sessions, until ok is
// false, and hands the results to done in the order of the requests. What is
// under way at a time is bounded.
func (r *Run) Map(ctx context.Context, next func() (request []byte, ok bool, err error), done func(result []byte) error) (err error) {
	rd := newRound(task{Kind: queryTask}, 0, 0)
	rd.answers = make(chan shardAnswer, window)
	if err := r.start(rd); err != nil {
		return err
	}
	defer func() {
		callErr := r.call(func() {
			if r.round == rd {
				r.finish(err)
			}
		})
		if err == nil {
			err = callErr
		}
	}()
	waiting := map[int][]byte{} // answers that came before their turn
	asked, turn, more := 0, 0, true
	for {
		for more && asked-turn < window {
			var request []byte
			if request, more, err = next(); err != nil {
				return err
			}
			if !more {
				break
			}
			err := r.call(func() {
				if r.round == rd {
					rd.requests[asked], rd.end = request, asked+1
					rd.pending = append(rd.pending, asked)
				}
			})
			if err != nil {
				return err
			}
			asked++
		}
		if turn == asked {
			return nil
		}
		select {
		case a := <-rd.answers:
			waiting[a.shard] = a.answer
		case <-rd.over:
			return rd.err
		case <-ctx.Done():
			return ctx.Err()
		}
		for {
			a, ok := waiting[turn]
			if !ok {
				break
			}
			delete(waiting, turn)
			if err := done(a); err != nil {
				return err
			}
			turn++
		}
	}
}

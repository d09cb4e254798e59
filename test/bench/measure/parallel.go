package measure

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Parallel calls do with every value of a sequence, from several workers, and returns their errors joined.
func Parallel[T any](workers int, values iter.Seq[T], do func(T) error) error {
	queue, errs := make(chan T), make([]error, workers)
	var working sync.WaitGroup
	for i := range errs {
		working.Go(func() {
			for value := range queue {
				errs[i] = errors.Join(errs[i], do(value))
			}
		})
	}
	for value := range values {
		queue <- value
	}
	close(queue)
	working.Wait()
	return errors.Join(errs...)
}

// Numbers returns the sequence 0 to count-1.
func Numbers(count int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for number := range count {
			if !yield(number) {
				return
			}
		}
	}
}

// Pause waits, or returns the cause if the context ends first.
func Pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(length):
		return nil
	}
}

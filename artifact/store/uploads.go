package store

import (
	"context"
	"time"
)

// Unfinished is an upload in parts that was begun and not completed. Its parts take room in the store,
// and no listing of objects shows them.
type Unfinished struct {
	Key   string
	ID    string // the store's name for the upload
	Begun time.Time
}

// Uploader is a Store in which uploads can be left unfinished.
type Uploader interface {
	Store
	// Unfinished lists the unfinished uploads of objects under a key prefix.
	Unfinished(ctx context.Context, prefix string) ([]Unfinished, error)
	// Abort removes an upload and its parts; one that is gone is no error.
	Abort(ctx context.Context, u Unfinished) error
}

// wrapper is a decorator that adds nothing to the requests about uploads.
type wrapper interface{ unwrap() Store }

// Uploads finds the Uploader in a store or below its decorators; nil where uploads leave nothing.
func Uploads(s Store) Uploader {
	for {
		switch at := s.(type) {
		case Uploader:
			return at
		case wrapper:
			s = at.unwrap()
		default:
			return nil
		}
	}
}

func (o *observed) unwrap() Store { return o.inner }
func (s *slowed) unwrap() Store   { return s.inner }

// Unfinished gives each listing the time that an answer may take.
func (t *timed) Unfinished(ctx context.Context, prefix string) ([]Unfinished, error) {
	inner := Uploads(t.inner)
	if inner == nil {
		return nil, nil
	}
	ctx, w := t.watch(ctx, OpList, prefix)
	defer w.release()
	w.arm(t.policy.Answer)
	all, err := inner.Unfinished(ctx, prefix)
	return all, w.explain(ctx, err)
}

func (t *timed) Abort(ctx context.Context, u Unfinished) error {
	inner := Uploads(t.inner)
	if inner == nil {
		return nil
	}
	ctx, w := t.watch(ctx, OpDelete, u.Key)
	defer w.release()
	w.arm(t.policy.Answer)
	return w.explain(ctx, inner.Abort(ctx, u))
}

// Unfinished repeats a listing that failed for a passing reason.
func (r *retrying) Unfinished(ctx context.Context, prefix string) (all []Unfinished, err error) {
	inner := Uploads(r.inner)
	if inner == nil {
		return nil, nil
	}
	err = r.again(ctx, func() error {
		all, err = inner.Unfinished(ctx, prefix)
		return err
	})
	return all, err
}

func (r *retrying) Abort(ctx context.Context, u Unfinished) error {
	inner := Uploads(r.inner)
	if inner == nil {
		return nil
	}
	return r.again(ctx, func() error { return inner.Abort(ctx, u) })
}

// again does something until it succeeds or there is no point in another try.
func (r *retrying) again(ctx context.Context, do func() error) error {
	p := r.patience()
	for {
		err := do()
		if err == nil {
			return nil
		}
		if err = p.wait(ctx, err); err != nil {
			return err
		}
	}
}

package store

import (
	"context"
	"time"
)

// Unfinished is a multipart upload that was begun and not completed. Its parts use space in the store, but are not
// listed as objects.
type Unfinished struct {
	Key   string
	ID    string // the store's ID of the upload
	Begun time.Time
	Dead  bool // its writer has certainly ended, so it is never completed
}

// Uploader is a Store in which uploads can remain unfinished.
type Uploader interface {
	Store
	// Unfinished lists the unfinished uploads of objects under a key prefix.
	Unfinished(ctx context.Context, prefix string) ([]Unfinished, error)
	// Abort removes an upload and its parts; it is not an error if it does not exist.
	Abort(ctx context.Context, u Unfinished) error
}

// wrapper is a decorator that does not change requests about uploads.
type wrapper interface{ unwrap() Store }

// Uploads returns the Uploader in a store or below its decorators; nil if uploads leave nothing.
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

// Unfinished limits the time of a listing like that of other requests.
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

// Unfinished repeats a listing that failed temporarily.
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

// again repeats an operation until it succeeds or a retry is pointless.
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

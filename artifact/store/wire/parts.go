package wire

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// partSize is the same in each attempt, so that parts that were sent can be found again.
func partSize(size int64) int64 {
	const unit = 1 << 20
	least := (size + mostParts - 1) / mostParts
	return max(leastPart, (least+unit-1)/unit*unit)
}

// inParts writes a large object as a multipart upload.
func (p *put) inParts() (Written, error) {
	if err := p.allowed(); err != nil {
		return Written{}, err
	}
	upload, known, err := p.resume()
	if err != nil {
		return Written{}, err
	}
	var parts []Part
	kept := int64(0)
	for left := p.size; left > 0; {
		data, err := p.read(min(left, partSize(p.size)))
		if err != nil {
			return Written{}, err
		}
		part := Part{Number: len(parts) + 1, sums: sumsOf(data)}
		if part.Written, err = p.send(upload, known, part, data); err != nil {
			return Written{}, keeping(err, kept)
		}
		parts = append(parts, part)
		left -= int64(len(data))
		kept += int64(len(data))
	}
	return p.complete(upload, parts, kept)
}

// complete makes the object of its parts.
func (p *put) complete(upload string, parts []Part, kept int64) (Written, error) {
	p.moved(0)
	said, err := p.client.Complete(p.ctx, upload, parts, p.cond)
	if err != nil {
		return said, keeping(p.gone(err), kept)
	}
	sums, err := together(parts)
	if err != nil {
		return said, err
	}
	return p.confirm(said, sums)
}

// allowed checks the condition before anything is sent. Complete checks it again.
func (p *put) allowed() error {
	if p.cond == (store.Condition{}) {
		return nil
	}
	there, err := p.client.Head(p.ctx)
	switch {
	case errors.Is(err, store.ErrForbidden):
		return nil
	case errors.Is(err, store.ErrNotFound) && p.cond.IfMatch == "":
		return nil
	case err != nil:
		return err
	case p.cond.IfAbsent || there.ETag != p.cond.IfMatch:
		return p.call.Precondition()
	}
	return nil
}

// resume finds the upload of an earlier attempt, or starts one. Credentials that may not list uploads cannot resume.
func (p *put) resume() (upload string, known map[int]Written, err error) {
	p.moved(0)
	uploads, err := p.client.Uploads(p.ctx)
	if err == nil && len(uploads) > 0 {
		p.moved(0)
		known, err = p.client.Parts(p.ctx, uploads[0])
		if err == nil {
			return uploads[0], known, nil
		}
	}
	if err != nil && !errors.Is(err, store.ErrForbidden) && !errors.Is(err, store.ErrNotFound) {
		return "", nil, err
	}
	p.moved(0)
	upload, err = p.client.Begin(p.ctx, true)
	return upload, nil, err
}

// send sends a part, unless the server has it.
func (p *put) send(upload string, known map[int]Written, part Part, data []byte) (Written, error) {
	if there, ok := known[part.Number]; ok && there.Size == int64(len(data)) {
		if same, sure := part.sums.same(there); sure && same {
			return there, nil
		}
	}
	p.moved(0)
	said, err := p.client.Send(p.ctx, upload, part.Number, p.body(data), int64(len(data)), part.sums)
	if err != nil {
		return said, p.gone(err)
	}
	if same, sure := part.sums.same(said); sure && !same {
		return said, p.damaged("its checksum of part %d is another one (%s, not %s)", part.Number,
			said.CRC32, part.sums.CRC32)
	}
	if said.ETag == "" {
		return said, p.damaged("it answered that it stored part %d, without its tag", part.Number)
	}
	return said, nil
}

// gone returns the error of an upload that another publisher completed, or that was aborted: the next attempt finds the
// object, or begins another upload.
func (p *put) gone(err error) error {
	if p.cond.IfMatch == "" && errors.Is(err, store.ErrNotFound) {
		return p.damaged("it forgot the parts that were sent: %v", err)
	}
	return err
}

// keeping adds to an error how much of an object the server keeps for the next attempt.
func keeping(err error, kept int64) error {
	var e *store.Error
	if errors.As(err, &e) {
		e.Kept = kept
	}
	return err
}

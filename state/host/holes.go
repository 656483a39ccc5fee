package host

import (
	"fmt"
	"io"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// maxHoles is the number of bytes of holes that are read of a file. Hashing them takes some seconds.
const maxHoles = 4 << 30

func tooManyHoles(p string) error {
	return Unsuitable(p, diag.WithHint(fmt.Errorf("%s has more than %s of holes, and is not read to its end", p,
		diag.Size(maxHoles)),
		"look at it with ls -ls: it may be large and take no room; such a file is copied and compared, but not hashed"))
}

// holes limits the bytes of holes that are read of a sparse file, from its offset on. The zero value has no limit.
type holes struct {
	file *opened // nil for a file without holes
	at   int64   // the offset of the file
	data int64   // start of the next content; end is its end
	end  int64
	read int64 // bytes of holes read so far
}

// next returns the part of p to read next, which is either content or a hole. It fills the part with zeros if it is a
// hole, which then need not be read.
func (h *holes) next(p []byte) (part []byte, hole bool, err error) {
	if h.file == nil || len(p) == 0 {
		return p, false, nil
	}
	if h.at >= h.end {
		if err := h.look(); err != nil {
			return nil, false, err
		}
	}
	if h.at >= h.data {
		return p[:min(int64(len(p)), max(h.end-h.at, 1))], false, nil
	}
	if h.read >= maxHoles {
		return nil, false, tooManyHoles(h.file.path)
	}
	part = p[:min(int64(len(p)), h.data-h.at)]
	clear(part)
	h.read += int64(len(part))
	_, err = h.file.Seek(h.at+int64(len(part)), io.SeekStart)
	return part, true, err
}

// look finds the next content. It does not change the offset of the file.
func (h *holes) look() (err error) {
	if h.at, err = h.file.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	h.data, h.end = walk.Extent(h.file.File, h.at, max(h.file.Size(), h.at))
	_, err = h.file.Seek(h.at, io.SeekStart)
	return err
}

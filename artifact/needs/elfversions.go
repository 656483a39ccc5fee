package needs

import (
	"fmt"
	"strings"
)

type versionWalk struct {
	*program
	data, texts []byte
	left        int // records that may still be read
	names       []string
}

// record returns the size bytes of the record at an offset.
func (w *versionWalk) record(at uint64, size int) ([]byte, error) {
	if w.left--; w.left < 0 {
		return nil, fmt.Errorf("%w: it has more than %d versions", errDamaged, maxRecords)
	}
	if at > uint64(len(w.data)) || uint64(len(w.data))-at < uint64(size) {
		return nil, errDamaged
	}
	return w.data[at : at+uint64(size)], nil
}

func (w *versionWalk) name(at uint32) error {
	if uint64(at) >= uint64(len(w.texts)) {
		return errDamaged
	}
	rest := w.texts[at:]
	text, _, ok := strings.Cut(string(rest[:min(len(rest), 256)]), "\x00")
	if !ok {
		return errDamaged
	}
	w.names = append(w.names, text)
	return nil
}

// needed reads Verneed records (16 bytes) with their Vernaux records (16 bytes).
func (w *versionWalk) needed(count uint64) ([]string, error) {
	at := uint64(0)
	for range count {
		r, err := w.record(at, 16)
		if err != nil {
			return nil, err
		}
		if err := w.neededOf(at+uint64(w.order.Uint32(r[8:])), w.order.Uint16(r[2:])); err != nil {
			return nil, err
		}
		next := uint64(w.order.Uint32(r[12:]))
		if next == 0 {
			break
		}
		at += next
	}
	return w.names, nil
}

// neededOf adds the names of the versions that are needed of one library, whose records begin at an offset.
func (w *versionWalk) neededOf(at uint64, count uint16) error {
	for range count {
		a, err := w.record(at, 16)
		if err != nil {
			return err
		}
		if err := w.name(w.order.Uint32(a[8:])); err != nil {
			return err
		}
		at += uint64(w.order.Uint32(a[12:]))
	}
	return nil
}

// defined reads Verdef records (20 bytes); the first Verdaux record (8 bytes) of each has the name.
func (w *versionWalk) defined(count uint64) ([]string, error) {
	at := uint64(0)
	for range count {
		r, err := w.record(at, 20)
		if err != nil {
			return nil, err
		}
		a, err := w.record(at+uint64(w.order.Uint32(r[12:])), 8)
		if err != nil {
			return nil, err
		}
		if err := w.name(w.order.Uint32(a)); err != nil {
			return nil, err
		}
		next := uint64(w.order.Uint32(r[16:]))
		if next == 0 {
			break
		}
		at += next
	}
	return w.names, nil
}

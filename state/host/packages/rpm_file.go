package packages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Tags of an rpm header that identify a package.
const (
	rpmName    = 1000
	rpmVersion = 1001
	rpmRelease = 1002
	rpmEpoch   = 1003
	rpmArch    = 1022
)

var errNoRPM = errors.New("this is not an rpm package file")

// describeRPM returns the name, version and architecture of an rpm package file. They are in the second of its two
// headers. describeRPM does not read the rest of the file.
func describeRPM(file io.Reader) (host.Package, error) {
	lead := make([]byte, 96)
	if _, err := io.ReadFull(file, lead); err != nil || !bytes.HasPrefix(lead, []byte{0xed, 0xab, 0xee, 0xdb}) {
		return host.Package{}, errNoRPM
	}
	if binary.BigEndian.Uint16(lead[6:]) == 1 {
		return host.Package{}, errors.New("this is a source package, which is not to be installed")
	}
	if _, err := readRPMHeader(file, true); err != nil { // signatures
		return host.Package{}, err
	}
	h, err := readRPMHeader(file, false)
	if err != nil {
		return host.Package{}, err
	}
	p := host.Package{Name: h.text(rpmName), Arch: h.text(rpmArch),
		Version: evr(h.number(rpmEpoch), h.text(rpmVersion), h.text(rpmRelease))}
	if p.Name == "" || h.text(rpmVersion) == "" {
		return host.Package{}, errNoRPM
	}
	return p, nil
}

// rpmHeader is a table of tags: 16 bytes each, which point into the data that follows.
type rpmHeader struct{ index, data []byte }

// readRPMHeader reads a header. The first header of a file is padded to a multiple of eight bytes.
func readRPMHeader(r io.Reader, filled bool) (h rpmHeader, err error) {
	const most = 64 << 20 // bytes; the header of a package with a million files is smaller
	intro := make([]byte, 16)
	if _, err := io.ReadFull(r, intro); err != nil || !bytes.HasPrefix(intro, []byte{0x8e, 0xad, 0xe8, 1}) {
		return h, errNoRPM
	}
	tags, size := int64(binary.BigEndian.Uint32(intro[8:])), int64(binary.BigEndian.Uint32(intro[12:]))
	if tags*16+size > most {
		return h, fmt.Errorf("the header of the package file has %d bytes, which is too much", tags*16+size)
	}
	whole, err := io.ReadAll(io.LimitReader(r, tags*16+size))
	if err != nil || int64(len(whole)) < tags*16+size {
		return h, errors.Join(errNoRPM, err)
	}
	if rest := size % 8; filled && rest > 0 {
		if _, err := io.CopyN(io.Discard, r, 8-rest); err != nil {
			return h, errNoRPM
		}
	}
	return rpmHeader{whole[:tags*16], whole[tags*16:]}, nil
}

// find returns the data from the value of a tag to the end, or nil if the header does not have the tag.
func (h rpmHeader) find(tag uint32) []byte {
	for at := 0; at < len(h.index); at += 16 {
		offset := binary.BigEndian.Uint32(h.index[at+8:])
		if binary.BigEndian.Uint32(h.index[at:]) == tag && int64(offset) < int64(len(h.data)) {
			return h.data[offset:]
		}
	}
	return nil
}

func (h rpmHeader) text(tag uint32) string {
	text, _, ended := bytes.Cut(h.find(tag), []byte{0})
	if !ended {
		return ""
	}
	return string(text)
}

func (h rpmHeader) number(tag uint32) string {
	data := h.find(tag)
	if len(data) < 4 {
		return ""
	}
	return strconv.FormatUint(uint64(binary.BigEndian.Uint32(data)), 10)
}

package clone

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// errIndex is the error for an index that is damaged, or has an unknown format.
var errIndex = errors.New("it is not an index of git that can be read")

// gitlinks returns the paths of the entries of an index that are commits of other repositories. git reads the
// repositories in all of these directories, even if .gitmodules does not list them.
func gitlinks(index []byte) ([]string, error) {
	links, err := gitlinksWith(index, 20)
	if err != nil {
		return gitlinksWith(index, 32) // a repository with SHA-256
	}
	return links, nil
}

// Sizes in the format of an index.
const (
	indexHead = 12 // "DIRC", the version, and the number of entries
	statBytes = 40 // of an entry, before its object ID
	modeAt    = 24
	gitlink   = 0o160000
)

// gitlinksWith reads an index with object IDs of id bytes.
func gitlinksWith(index []byte, id int) (links []string, err error) {
	if len(index) < indexHead || string(index[:4]) != "DIRC" {
		return nil, errIndex
	}
	version := binary.BigEndian.Uint32(index[4:])
	if version < 2 || version > 4 {
		return nil, errIndex
	}
	name, at := "", indexHead
	for range binary.BigEndian.Uint32(index[8:]) {
		fixed := statBytes + id + 2
		if len(index)-at < fixed+2 {
			return nil, errIndex
		}
		start, mode := at, binary.BigEndian.Uint32(index[at+modeAt:])
		if version > 2 && index[at+fixed-2]&0x40 != 0 {
			fixed += 2
		}
		at += fixed
		if version == 4 {
			var drop int
			if drop, at = offset(index, at); drop > len(name) || at < 0 {
				return nil, errIndex
			}
			name = name[:len(name)-drop]
		} else {
			name = ""
		}
		end := bytes.IndexByte(index[at:], 0)
		if end < 0 || mode&0o7777 != mode&0o777 || mode>>12 == 0 || mode>>16 != 0 {
			return nil, errIndex
		}
		name += string(index[at : at+end])
		if at += end + 1; version < 4 {
			at = start + (at-1-start+8)/8*8 // 1 to 8 zero bytes end an entry
		}
		if mode == gitlink && name != "" {
			links = append(links, name)
		}
	}
	return links, nil
}

// offset decodes a variable-length number, encoded as the offsets in packs of git. It returns the number and the index
// after it; end is -1 if the encoding is invalid.
func offset(index []byte, at int) (n, end int) {
	for i := at; i < len(index) && i < at+5; i++ {
		n = n<<7 | int(index[i]&0x7f)
		if index[i]&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, -1
}

package module

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Mode is a file mode in the notation of SLS files: '0644', 644 (which YAML reads as a decimal number), or
// keep. The zero value means that no mode is given.
type Mode struct {
	Given bool // Bits are valid
	Keep  bool // use the mode of the source; a source without a mode leaves the file's unchanged
	Bits  fs.FileMode
}

// UnmarshalSLS parses a mode.
func (m *Mode) UnmarshalSLS(v any) error {
	if v == nil {
		return nil
	}
	text := strings.Trim(strings.TrimSpace(value.Str(v)), `"'`)
	if text == "keep" {
		*m = Mode{Keep: true}
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0o"), 8, 16)
	if err != nil || n > 0o7777 {
		return fmt.Errorf("%s is not a file mode; write it in quotes, such as '0644'", value.Repr(v))
	}
	*m = Mode{Given: true, Bits: fromRaw(uint32(n))}
	return nil
}

func fromRaw(n uint32) fs.FileMode {
	mode := fs.FileMode(n & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if n&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// ModeText formats a mode like Salt: four octal digits.
func ModeText(mode fs.FileMode) string {
	n := uint32(mode.Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&flag != 0 {
			n |= bit
		}
	}
	return fmt.Sprintf("%04o", n)
}

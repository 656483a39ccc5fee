package file

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestPlistEqualsPlistlib compares with the output of Python's plistlib.
func TestPlistEqualsPlistlib(t *testing.T) {
	v := value.NewMap("b", value.NewList(1, 2.5, true, "x<y", value.NewList(), value.NewMap()),
		"a", value.NewMap("n", "v"))
	want := plistHead +
		"<dict>\n\t<key>a</key>\n\t<dict>\n\t\t<key>n</key>\n\t\t<string>v</string>\n\t</dict>\n\t<key>b</key>\n\t<array>\n" +
		"\t\t<integer>1</integer>\n\t\t<real>2.5</real>\n\t\t<true/>\n\t\t<string>x&lt;y</string>\n\t\t<array/>\n" +
		"\t\t<dict/>\n\t</array>\n</dict>\n</plist>"
	if got, err := dumpPlist(v, dumpOptions{Map: value.NewMap()}); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := dumpPlist(nil, dumpOptions{Map: value.NewMap()}); err == nil {
		t.Error("null is no error, although a property list cannot hold it")
	}
}

// TestMsgpack compares with the encodings in the MessagePack specification.
func TestMsgpack(t *testing.T) {
	for want, v := range map[string]any{
		"c0": nil, "c3": true, "c2": false, "05": 5, "ff": -1, "e0": -32, "d0df": -33, "cc80": 128,
		"cd0100": 256, "ce00010000": 1 << 16,
		"d1ff00": -256, "cf0000000100000000": 1 << 32, "cb3ff8000000000000": 1.5, "a161": "a",
		"92a16101":                           value.NewList("a", 1),
		"82a161c0a16290":                     value.NewMap("a", nil, "b", value.NewList()),
		"d920" + strings.Repeat("61", 32):    strings.Repeat("a", 32),
		"da0100" + strings.Repeat("61", 256): strings.Repeat("a", 256),
	} {
		if got, err := dumpMsgpack(v, dumpOptions{}); err != nil || hex.EncodeToString([]byte(got)) != want {
			t.Errorf("%s: %x, %v, want %s", value.Repr(v), got, err, want)
		}
	}
}

package formats_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/formats"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const tomlText = `title = "TOML ä \u00e9"
[owner]
name = 'raw \n'
dob = 1979-05-27T07:32:00Z
day = 1979-05-27
on = true
[database]
ports = [ 8000, 8001 ]
data = [ ["delta", "phi"], [3.14] ]
big = 1_000
hex = 0xff
f = 6.626e-34
neg = -17
temp = { cpu = 79.5, case = 72 }
[a.b.c]
x = 1
[[products]]
name = "Hammer"
[[products]]
name = "Nail"
[products.size]
len = 2
`

const plistText = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>b</key>
	<data>
	AP8=
	</data>
	<key>big</key>
	<integer>1099511627776</integer>
	<key>d</key>
	<date>2024-01-31T12:00:00Z</date>
	<key>e</key>
	<array/>
	<key>f</key>
	<false/>
	<key>l</key>
	<array>
		<integer>1</integer>
		<array>
			<string>a</string>
		</array>
		<dict/>
	</array>
	<key>n</key>
	<integer>-3</integer>
	<key>r</key>
	<real>1.5</real>
	<key>s</key>
	<string>ä&lt;&amp;&gt;</string>
	<key>t</key>
	<true/>
</dict>
</plist>
`

const packed = "de0012a173a2c3a4a46c6f6e67d92878787878787878787878787878787878787878787878787878787878787878787878787878787878a16efda26e32d1ff38a26e33" +
	"d2fffeee90a26e34d3ffffff0000000000a27538ccc8a3753136cdea60a3753332ce80000000a3753634cf0000010000000000a172cb3ff8000000000000a174c3a166c2a17ac0" +
	"a16c930191a1618001a36f6e65a16dde0011a13000a13101a13202a13303a13404a13505a13606a13707a13808a13909a231300aa231310ba231320ca231330da231340ea231350f" +
	"a2313610a162c40200ff"

// TestDecodersMatchPython compares with the results of Python's toml, plistlib and msgpack; dates are as Python prints
// them.
func TestDecodersMatchPython(t *testing.T) {
	binary, err := hex.DecodeString(packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		read func([]byte) (any, error)
		text string
		want string
	}{
		{"toml", formats.TOML, tomlText,
			`{'title': 'TOML ä é', 'owner': {'name': 'raw \\n', 'dob': '1979-05-27 07:32:00+00:00', 'day': '1979-05-27', ` +
				`'on': True}, ` +
				`'database': {'ports': [8000, 8001], 'data': [['delta', 'phi'], [3.14]], 'big': 1000, 'hex': 255, 'f': ` +
				`6.626e-34, 'neg': -17, ` +
				`'temp': {'cpu': 79.5, 'case': 72}}, 'a': {'b': {'c': {'x': 1}}}, 'products': [{'name': 'Hammer'}, {'name': ` +
				`'Nail', 'size': {'len': 2}}]}`},
		{"plist", formats.Plist, plistText,
			`{'b': b'\x00\xff', 'big': 1099511627776, 'd': '2024-01-31 12:00:00', 'e': [], 'f': False, 'l': [1, ['a'], {}], ` +
				`'n': -3, 'r': 1.5, 's': 'ä<&>', 't': True}`},
		{"msgpack", formats.Msgpack, string(binary),
			`{'s': 'ä', 'long': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'n': -3, 'n2': -200, 'n3': -70000, ` +
				`'n4': -1099511627776, 'u8': 200, 'u16': 60000, 'u32': 2147483648, 'u64': 1099511627776, 'r': 1.5, 't': True, ` +
				`'f': False, 'z': None, 'l': [1, ['a'], {}], ` +
				`1: 'one', 'm': {'0': 0, '1': 1, '2': 2, '3': 3, '4': 4, '5': 5, '6': 6, '7': 7, '8': 8, '9': 9, '10': 10, '11': ` +
				`11, '12': 12, '13': 13, '14': 14, ` +
				`'15': 15, '16': 16}, 'b': b'\x00\xff'}`},
	} {
		v, err := test.read([]byte(test.text))
		if got := value.Repr(v); err != nil || got != test.want {
			t.Errorf("%s: %v\n got %s\nwant %s", test.name, err, got, test.want)
		}
		for n := range len(test.text) { // no prefix panics
			_, _ = test.read([]byte(test.text[:n]))
		}
	}
}

// TestRefusals checks the errors for texts that violate the format, and for texts that only an attacker writes.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name string
		read func([]byte) (any, error)
		text string
		want string
	}{
		{"duplicate", formats.TOML, "a = 1\na = 2\n", "it is not TOML"},
		{"two tables", formats.TOML, "[a]\n[a]\n", "table a is there twice"},
		{"value and table", formats.TOML, "a = 1\n[a.b]\n", "key a is a value and a table"},
		{"value and array", formats.TOML, "a = 1\n[[a]]\n", "key a is an array of tables"},
		{"no value", formats.TOML, "a = \n", "it is not TOML"},
		{"deep TOML", formats.TOML, "a = " + strings.Repeat("[", 100000), "it is not TOML"},
		{"binary", formats.Plist, "bplist00", "binary property list"},
		{"other XML", formats.Plist, "<a/>", "not a property list"},
		{"deep", formats.Plist, "<plist>" + strings.Repeat("<array>", 1000), "nested too deeply"},
		{"no value", formats.Plist, "<plist><dict><key>a</key></dict></plist>", "key a has no value"},
		{"cut", formats.Msgpack, "\x92\x01", "ends too early"},
		{"long list", formats.Msgpack, "\xdd\xff\xff\xff\xff", "ends too early"},
		{"deep list", formats.Msgpack, strings.Repeat("\x91", 1000), "nested too deeply"},
		{"rest", formats.Msgpack, "\x01\x02", "1 bytes follow"},
		{"extension", formats.Msgpack, "\xc7\x01\x01\x01", "0xc7"},
	} {
		if _, err := test.read([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

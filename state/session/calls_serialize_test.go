package session_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestSerializersOfFileSerialize(t *testing.T) {
	s, root := sessionBelow(t, nil, nil)
	data := value.NewMap("b", value.NewMap("c", true), "a", 1)
	ini := "[DEFAULT]\nhome = /srv\n[web]\nPath = %(home)s/www\nshare = 5%%\nlines = a\n  b\n"
	runCalls(t, s, root, []functionCall{
		{name: "slsutil.serialize", args: []any{"toml", data}, want: `'a = 1\n\n[b]\nc = true\n'`},
		{name: "slsutil.serialize", args: []any{"python", data}, want: `"{'a': 1, 'b': {'c': True}}"`},
		{name: "slsutil.deserialize", args: []any{"configparser", ini},
			want: `{'web': {'home': '/srv', 'path': '/srv/www', 'share': '5%', 'lines': 'a\nb'}}`},
		{name: "slsutil.deserialize", args: []any{"configparser", "[a]\nx = %(y)s\n"}, want: "!setting x of section a"},
		{name: "slsutil.deserialize", args: []any{"configparser", "[a]\nx = %(x)s\n"}, want: "!nested too deeply"},
		{name: "slsutil.deserialize", args: []any{"configparser", "x = 1\n"}, want: "!precedes the first section"},
		{name: "slsutil.deserialize", args: []any{"toml", "b = 1\na = [2]\n[c]\nd = 1979-05-27"},
			want: "{'b': 1, 'a': [2], 'c': {'d': '1979-05-27'}}"},
		{name: "slsutil.deserialize", args: []any{"toml", "a = "}, want: "!it is not TOML"},
		{name: "slsutil.deserialize", args: []any{"plist", "<plist><dict><key>a</key><integer>1</integer></dict></plist>"},
			want: "{'a': 1}"},
		{name: "slsutil.deserialize", args: []any{"msgpack", []byte("\x81\xa1a\x01")}, want: "{'a': 1}"},
		{name: "slsutil.deserialize", args: []any{"yamlex", "b: 0644\na: [1]"}, want: "{'b': 644, 'a': [1]}"},
		{name: "slsutil.deserialize", args: []any{"python", "{'a': 1}"},
			want: "!there is no serializer \"python\" here the serializers are"},
		{name: "slsutil.serialize", args: []any{"msgpack", value.NewMap("a", 1)}, want: `b'\x81\xa1a\x01'`},
		{name: "slsutil.serialize", args: []any{"plist", value.NewMap("a", 1)}, want: "~<key>a</key>"},
		{name: "slsutil.serialize", args: []any{"yamlex", data}, want: `'b:\n  c: true\na: 1'`},
	})
}

package file

import "github.com/corpus-agent/corpus-agent/state/value"

// Serializer writes data in a format of file.serialize for those who have no file to write, and reads it.
type Serializer struct{ format format }

// SerializerOf finds the format of a name: toml, python or configparser, for one.
func SerializerOf(name string) (Serializer, bool) {
	for _, f := range allFormats() {
		if f.name == name {
			return Serializer{f}, true
		}
	}
	return Serializer{}, false
}

// Dump writes a value; the options are those of serializer_opts.
func (s Serializer) Dump(v any, options *value.Map) (string, error) {
	if options == nil {
		options = value.NewMap()
	}
	return s.format.dump(v, dumpOptions{Map: options})
}

// Load reads a text.
func (s Serializer) Load(text string, options *value.Map) (any, error) {
	return s.format.load([]byte(text), options)
}

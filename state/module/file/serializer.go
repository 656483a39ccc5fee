package file

import "github.com/corpus-agent/corpus-agent/state/value"

// Serializer writes and reads a format of file.serialize for callers without a file.
type Serializer struct{ format format }

// SerializerOf returns the serializer of a format such as toml, python or configparser.
func SerializerOf(name string) (Serializer, bool) {
	for _, f := range allFormats() {
		if f.name == name {
			return Serializer{f}, true
		}
	}
	return Serializer{}, false
}

// Dump serializes a value; options are those of serializer_opts.
func (s Serializer) Dump(v any, options *value.Map) (string, error) {
	if options == nil {
		options = value.NewMap()
	}
	return s.format.dump(v, dumpOptions{Map: options})
}

// Load parses a text; options are those of deserializer_opts.
func (s Serializer) Load(text string, options *value.Map) (any, error) {
	return s.format.load([]byte(text), options)
}

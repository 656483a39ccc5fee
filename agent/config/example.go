package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// Example returns an agent.yaml in which every setting is a comment with its meaning and its default. Removing the #
// before such a setting changes nothing. The URL of a store is set if store is not "".
func Example(store string) []byte {
	var b strings.Builder
	b.WriteString("# Settings of corpus-agent on this host. Each has its default here; remove the # in front of one to\n" +
		"# change it. This command finds mistakes: corpus-agent config check\n")
	for _, k := range Keys() {
		b.WriteString("\n")
		comment(&b, k.Doc, k.Range())
		if k.Name == "store" && store != "" {
			fmt.Fprintf(&b, "store: %q\n", store)
			continue
		}
		fmt.Fprintf(&b, "#%s: %s\n", k.Name, inYAML(k.Default))
	}
	return []byte(b.String())
}

// widest is the length of the longest line of a comment.
const widest = 110

// comment writes the meaning of a setting and its range, if it has one, in lines that begin with "# ".
func comment(b *strings.Builder, doc, span string) {
	if span != "" {
		doc += " (" + span + ")"
	}
	line := "#"
	for _, word := range strings.Fields(doc) {
		if len(line)+1+len(word) > widest {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// inYAML returns a default in one line of YAML.
func inYAML(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case time.Duration:
		return recipe.Short(v)
	case nil:
		return "[]"
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	}
	return fmt.Sprint(v)
}

package config

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// value is one text that a source sets for a key, or an item of a list, and its position.
type value struct {
	key  Key
	text string
	item int
	at   diag.Pos
}

// values returns the values of all sources, in increasing priority.
func (s Sources) values() (all []value) {
	file, data, _ := source(s)
	path := s.File
	if file.Damaged != nil {
		path = s.Copy
	}
	var root yaml.Node
	if yaml.Unmarshal(data, &root) == nil && len(root.Content) > 0 {
		all = inFile(path, "", root.Content[0])
	}
	for _, k := range Keys() {
		if s.Getenv != nil {
			all = append(all, given(k, s.Getenv(k.Env()), "environment variable "+k.Env())...)
		}
		all = append(all, given(k, s.Flags[k.Name], "flag --"+k.Name)...)
	}
	return all
}

// at returns the position of the value of a key; that of the file if no source sets it.
func (s Sources) at(name string) diag.Pos {
	at := diag.Pos{File: s.File}
	for _, v := range s.values() {
		if v.key.Name == name {
			at = v.at
		}
	}
	return at
}

// inFile returns the values below a dotted prefix.
func inFile(path, prefix string, n *yaml.Node) (all []value) {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := prefix+n.Content[i].Value, n.Content[i+1]
		k, known := find(name)
		switch {
		case !known:
			all = append(all, inFile(path, name+".", v)...)
		case v.Kind == yaml.ScalarNode && v.Value != "":
			all = append(all, value{k, v.Value, 0, diag.Pos{File: path, Line: v.Line, Col: v.Column}})
		case v.Kind == yaml.SequenceNode:
			for j, item := range v.Content {
				all = append(all, value{k, item.Value, j, diag.Pos{File: path, Line: item.Line, Col: item.Column}})
			}
		}
	}
	return all
}

// given returns the values of a text from another source. Items of a list are separated by spaces.
func given(k Key, text, from string) (all []value) {
	items := []string{text}
	if k.Kind == Texts {
		items = strings.Fields(text)
	}
	for i, item := range items {
		if item != "" {
			all = append(all, value{k, item, i, diag.Pos{File: from}})
		}
	}
	return all
}

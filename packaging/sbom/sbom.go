// Package sbom lists the modules of a program in a release, as a CycloneDX document.
//
// The linker stores the modules of a program, with their versions and checksums, in the program itself. So the
// document is made from the program that is shipped, and does not depend on the present go.mod.
package sbom

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
)

// Document is a list of components in the form of CycloneDX 1.5.
type Document struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   Metadata    `json:"metadata"`
	Components []Component `json:"components"`
}

// Metadata describes the subject of the document.
type Metadata struct {
	Component Component `json:"component"`
}

// Component is a module, the standard library, or the program.
type Component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	Hashes  []Hash `json:"hashes,omitempty"`
}

// Hash is the checksum of a module, as go.sum has it: SHA-256 of the list of its files' checksums.
type Hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// Of returns the document of a program. version is that of the release; if it is "", the program's own is used.
func Of(program, version string) (Document, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return Document{}, fmt.Errorf("reading the modules of %s: %w", program, err)
	}
	if version == "" {
		version = info.Main.Version
	}
	d := Document{Format: "CycloneDX", Spec: "1.5", Version: 1,
		Metadata: Metadata{component("application", info.Path, version)}}
	d.Components = append(d.Components, component("library", "std", strings.TrimPrefix(info.GoVersion, "go")))
	for _, m := range info.Deps {
		d.Components = append(d.Components, library(m))
	}
	return d, nil
}

func library(m *debug.Module) Component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component("library", m.Path, m.Version)
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == 32 {
		c.Hashes = []Hash{{"SHA-256", hex.EncodeToString(sum)}}
	}
	return c
}

func component(kind, name, version string) Component {
	purl := "pkg:golang/" + name + "@" + version
	return Component{Type: kind, Ref: purl, Name: name, Version: version, PURL: purl}
}

// JSON returns the document's text; it is reproducible.
func (d Document) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

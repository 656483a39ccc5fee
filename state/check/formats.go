package check

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// finding is a Finding in JSON.
type finding struct {
	Kind    string   `json:"kind"` // mistake or note
	File    string   `json:"file,omitempty"`
	Line    int      `json:"line,omitempty"`
	Column  int      `json:"column,omitempty"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
	Code    string   `json:"code,omitempty"`  // of the hint
	Hosts   []string `json:"hosts,omitempty"` // empty if all hosts are affected
}

// compiled is a Compiled in JSON.
type compiled struct {
	ID     string   `json:"id"`
	States int      `json:"states"`
	SLS    []string `json:"sls"`
}

func kind(f Finding) string {
	if f.Note {
		return "note"
	}
	return "mistake"
}

// WriteJSON writes a report as a JSON document with the keys findings, hosts, unused and unused_pillar.
func WriteJSON(w io.Writer, r *Report) error {
	doc := struct {
		Findings []finding  `json:"findings"`
		Hosts    []compiled `json:"hosts"`
		Unused   []string   `json:"unused"`
		Pillar   []string   `json:"unused_pillar"`
	}{[]finding{}, []compiled{}, append([]string{}, r.Unused...), append([]string{}, r.UnusedPillar...)}
	for _, f := range r.Findings {
		doc.Findings = append(doc.Findings, finding{kind(f), f.Pos.File, f.Pos.Line, f.Pos.Col, f.Message, f.Hint,
			diag.CodesOf(f.Hint), f.Minions})
	}
	for _, h := range r.Hosts {
		doc.Hosts = append(doc.Hosts, compiled{h.ID, h.States, append([]string{}, h.SLS...)})
	}
	return indented(w, doc)
}

func indented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// The types below are the part of SARIF 2.1.0 (docs.oasis-open.org/sarif/sarif/v2.1.0) that a list of findings needs.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

// WriteSARIF writes the findings in SARIF 2.1.0, which forges show beside the lines of a change.
func WriteSARIF(w io.Writer, r *Report, version string) error {
	run := sarifRun{Results: []sarifResult{}, Tool: sarifTool{sarifDriver{"corpus", version, []sarifRule{
		{"mistake", sarifText{"A host refuses the tree, or a state of it fails"}},
		{"note", sarifText{"Only a host can tell whether this is right"}},
	}}}}
	for _, f := range r.Findings {
		result := sarifResult{RuleID: kind(f), Level: "error", Message: sarifText{withHint(f)}}
		if f.Note {
			result.Level = "note"
		}
		if f.Pos.File != "" {
			place := sarifPhysical{Artifact: sarifArtifact{filepath.ToSlash(f.Pos.File)}}
			if f.Pos.Line > 0 {
				place.Region = &sarifRegion{f.Pos.Line, f.Pos.Col}
			}
			result.Locations = []sarifLocation{{place}}
		}
		run.Results = append(run.Results, result)
	}
	return indented(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func withHint(f Finding) string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + "; hint: " + f.Hint
}

type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as a suite of JUnit: a test for each host, and one for the mistakes that do not depend
// on a host.
func WriteJUnit(w io.Writer, r *Report) error {
	suite := junitSuite{Name: "corpus check", Cases: []junitCase{{Class: "corpus.check", Name: "every host"}}}
	suite.Cases[0].Failure = failure(r, func(f Finding) bool { return len(f.Minions) == 0 })
	for _, h := range r.Hosts {
		suite.Cases = append(suite.Cases,
			junitCase{Class: "corpus.check", Name: h.ID, Failure: failure(r, func(f Finding) bool {
				for _, id := range f.Minions {
					if id == h.ID {
						return true
					}
				}
				return false
			})})
	}
	suite.Tests = len(suite.Cases)
	for _, c := range suite.Cases {
		if c.Failure != nil {
			suite.Failures++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// failure joins the mistakes of a test; it returns nil for none.
func failure(r *Report, has func(Finding) bool) *junitFailure {
	var texts []string
	for _, f := range r.Mistakes() {
		if has(f) {
			texts = append(texts, f.Pos.String()+": "+withHint(f))
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return &junitFailure{Message: fmt.Sprint(diag.Count(len(texts), "mistake")), Text: strings.Join(texts, "\n")}
}

package session

// This file finds steps that are certain to fail, so that a deploy is refused before its first change.

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// addCertainFailures adds to the problems of a program the steps that cannot succeed as they are declared.
func (s *Session) addCertainFailures(p *compile.Program) {
	for _, step := range p.Steps {
		resource, ok := s.registry().New(step.State(), step.Fun())
		if !ok {
			continue // the compiler reports it
		}
		problems := s.wrongArguments(step, resource)
		problems = append(problems, s.missingSources(step)...)
		problems = append(problems, s.unknownInGuards(step)...)
		for _, problem := range problems {
			if problem.Hint == "" {
				problem.Hint = diag.Argument.Coded(correctArgument(step.Function()))
			}
		}
		p.Problems = append(p.Problems, problems...)
	}
}

// wrongArguments returns a problem for each argument of a step that has a wrong type, is misspelt or contradicts
// another and, if strict_arguments is set, for unknown arguments.
func (s *Session) wrongArguments(step *compile.Step, resource module.Resource) diag.List {
	call := module.Call{Function: step.Function(), Arguments: step.Chunk, At: step.At}
	warnings, problems := s.decoder.Decode(resource, call)
	misspelled := s.decoder.Misspelled(resource, call)
	problems = append(problems, misspelled...)
	if v, ok := resource.(module.Validated); ok && len(problems) == 0 {
		if err := v.Valid(); err != nil {
			problems.Add(step.Pos, "%s of %s: %v", step.Function(), step.ID(), err).WithHint(diag.Argument, diag.HintOf(err))
		}
	}
	if !s.flag("strict_arguments", false) {
		return problems
	}
	for _, w := range append(warnings, step.Slips()...) {
		if !slices.ContainsFunc(misspelled, func(d *diag.Diagnostic) bool { return d.Pos == w.Pos }) {
			problems = append(problems, w)
		}
	}
	return problems
}

// conditional lists the arguments because of which a step may not read its source.
var conditional = []string{
	"onlyif", "unless", "creates", "onfail", "onfail_any", "onfail_all", "onchanges", "onchanges_any", "prereq",
	"prerequired",
	"contents", "contents_pillar", "contents_grains", "create", "replace", "retry",
}

// missingSources returns a problem if none of the sources of a step exists in the state tree.
func (s *Session) missingSources(step *compile.Step) (problems diag.List) {
	switch step.Function() {
	case "file.managed", "file.recurse", "file.append", "file.prepend", "cmd.script", "ssh_auth.present", "cron.file":
	default:
		return nil
	}
	if slices.ContainsFunc(conditional, func(argument string) bool { return step.Chunk.Has(argument) }) {
		return nil
	}
	env, _ := step.Chunk.Value(compile.KeyEnv).(string)
	candidates := literalSources(step.Chunk.Value("source"), env)
	for _, p := range candidates {
		if there, err := s.sources.inTree(p); there || err != nil { // the run reports files that it cannot read
			return nil
		}
	}
	if len(candidates) > 0 {
		err := s.sources.missing(candidates[0])
		problems.Add(step.At("source"), "the source %s of %s is not in the state tree: %v",
			"salt://"+candidates[0].path, step.Function(), err).WithHint(diag.Download, cmp.Or(diag.HintOf(err),
			"add the file to the tree, or correct its path"))
	}
	return problems
}

// sureHash matches a source_hash that is a hash, and not the place of one.
var sureHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\w+[=:])?[0-9a-fA-F]{32,128}$`) })

// expected returns the URLs on the network that steps of a program will certainly download unless another step fails,
// in their order. Only a step whose file or directory does not exist yet counts, and whose hash fixes the content of
// the URL.
func (s *Session) expected(p *compile.Program) (urls []string) {
	if s.Remote == nil {
		return nil
	}
	open := append(slices.Clone(conditional), "if_missing", "use_etag", "skip_verify")
	for _, step := range p.Steps {
		source, _ := step.Chunk.Value("source").(string)
		hash, _ := step.Chunk.Value("source_hash").(string)
		scheme := parsePlace(source, "").scheme
		if step.Function() != "file.managed" && step.Function() != "archive.extracted" ||
			scheme == "salt" || scheme == "file" || !sureHash().MatchString(hash) || slices.Contains(urls, source) ||
			slices.ContainsFunc(open, step.Chunk.Has) {
			continue
		}
		name, _ := step.Chunk.Value("name").(string)
		if _, err := s.Host.Files.Lstat(name); path.IsAbs(name) && errors.Is(err, fs.ErrNotExist) {
			urls = append(urls, source)
		}
	}
	return urls
}

// literalSources returns the places of a source, or of a list of sources, if all are salt:// URLs, and nil otherwise.
func literalSources(source any, env string) (all []place) {
	items := []any{source}
	if list, ok := source.(*value.List); ok {
		items = list.Items
	}
	for _, item := range items {
		text, ok := item.(string)
		p := parsePlace(text, env)
		if !ok || p.scheme != "salt" {
			return nil
		}
		all = append(all, p)
	}
	return all
}

// unknownInGuards returns a problem for each function in a guard that does not exist. It leaves out functions whose
// program is missing, since an earlier state may install the program.
func (s *Session) unknownInGuards(step *compile.Step) (problems diag.List) {
	for _, guard := range []string{"onlyif", "unless"} {
		list, _ := step.Chunk.Value(guard).(*value.List)
		if list == nil {
			continue
		}
		for _, item := range list.Items {
			condition, _ := item.(*value.Map)
			name, ok := condition.Value("fun").(string)
			if !ok || s.functions.Has(name) {
				continue
			}
			if err := s.functions.Unknown(name); !errors.Is(err, function.ErrNotHere) {
				problems.Add(step.At(guard), "%s of %s: %v", guard, step.Function(), err).WithHint(diag.Argument, diag.HintOf(err))
			}
		}
	}
	return problems
}

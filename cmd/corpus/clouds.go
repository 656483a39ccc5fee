package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// clouds has the flags of the commands that read and change a cloud.
type clouds struct {
	*program
	named   string // the entry of clouds.yaml; empty for none
	on      string // the node of the guest that is changed; empty for any
	channel string // of the project cloud
	yes     bool   // publish without a question
	dry     bool   // show the change, and publish nothing

	more map[string][]byte // files that a new cloud gets, besides those of every one

	unanswered bool // the command answers after another change
	start      startFlags
}

// flags adds the flags that all commands of clouds have.
func (k *clouds) flags(c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVar(&k.named, "cloud", k.Getenv("CORPUS_CLOUD"), "entry of ~/.config/corpus/clouds.yaml (CORPUS_CLOUD)")
	f.StringVar(&k.channel, "channel", "", "channel of the project cloud that nodes follow; prod by default")
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return exit.WithCode(exit.Usage, k.choose()) }
}

// editFlags adds the flags of commands that change a cloud.
func (k *clouds) editFlags(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVarP(&k.yes, "yes", "y", false, "sign and publish the change without a question")
	c.Flags().BoolVar(&k.dry, "dry-run", false, "show the change, and publish nothing")
	k.start.addExempt(c)
	k.draftFlag(c)
	return c
}

// knownCloud is one entry of clouds.yaml.
type knownCloud struct {
	store, keys, trustRoot, channel string
}

// choose sets the flags that were not given from the entry of clouds.yaml.
func (k *clouds) choose() error {
	one := knownCloud{}
	if k.named != "" {
		found, err := k.entry()
		if err != nil {
			return err
		}
		one = found
	}
	k.store, k.keys = cmp.Or(k.store, one.store), cmp.Or(k.keys, one.keys)
	k.trustRoot = cmp.Or(k.trustRoot, one.trustRoot)
	k.channel = cmp.Or(k.channel, one.channel, "prod")
	return artifact.CheckChannel(k.channel)
}

// entry returns the cloud with the name that was given.
func (k *clouds) entry() (knownCloud, error) {
	all, file, err := k.knownClouds()
	found, known := all[k.named]
	if known && err == nil {
		return found, nil
	}
	if k.named == devCloud {
		if dev, there, wrong := devEntry(); there || wrong != nil {
			return dev, wrong
		}
	}
	if err != nil {
		return found, err
	}
	hint := diag.DidYouMean(k.named, slices.Collect(maps.Keys(all)))
	if hint == "" {
		hint = "it has " + cmp.Or(strings.Join(slices.Sorted(maps.Keys(all)), ", "), "none")
	}
	return found, diag.Usage.Hint(fmt.Errorf("%s has no cloud named %s", file, k.named), "%s", hint)
}

// knownClouds reads clouds.yaml, or the file that the RFC names if there is none, and returns its path.
func (k *clouds) knownClouds() (map[string]knownCloud, string, error) {
	config, home := k.Getenv("XDG_CONFIG_HOME"), k.Getenv("HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	files := []string{filepath.Join(config, "corpus", "clouds.yaml"), filepath.Join(home, ".makinastates.conf")}
	for _, file := range files {
		is, err := walk.Exists(file)
		if err != nil {
			return nil, file, err
		}
		if !is {
			continue
		}
		data, err := walk.ReadGiven(file)
		if err != nil {
			return nil, file, fmt.Errorf("reading the list of clouds: %w", err)
		}
		all, err := parseClouds(file, data)
		return all, file, err
	}
	return nil, files[0], diag.Usage.Hint(fmt.Errorf("there is no list of clouds: %s does not exist", files[0]),
		"write one, such as prod: {store: s3://bucket/prefix, keys: /home/ann/keys}")
}

// parseClouds reads a list of clouds. Each has a store; the RFC calls that key url. The RFC's keys id and password are
// accepted and ignored, since keys sign what is published.
func parseClouds(file string, data []byte) (map[string]knownCloud, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, diag.Usage.Of(diag.List{recipe.NotYAML(file, err)})
	}
	all, problems := map[string]knownCloud{}, diag.List{}
	add := func(n *yaml.Node, hint, format string, args ...any) {
		problems.Add(diag.Pos{File: file, Line: n.Line, Col: n.Column}, format, args...).WithHint(diag.Usage, hint)
	}
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil, diag.Usage.Hint(fmt.Errorf("%s is not a mapping of names to clouds", file), "write `NAME: {store: URL}`")
	}
	for i := 0; i+1 < len(root.Content[0].Content); i += 2 {
		name, value := root.Content[0].Content[i], root.Content[0].Content[i+1]
		one := knownCloud{}
		if value.Kind != yaml.MappingNode {
			add(value, "write `store: URL` below its name", "%s: a mapping was expected", name.Value)
			continue
		}
		for j := 0; j+1 < len(value.Content); j += 2 {
			key, v := value.Content[j], value.Content[j+1]
			into := map[string]*string{"store": &one.store, "url": &one.store, "keys": &one.keys, "trust_root": &one.trustRoot,
				"channel": &one.channel, "id": new(string), "password": new(string)}
			to, known := into[key.Value]
			switch {
			case !known:
				add(key, "known keys are store, keys, trust_root and channel", "there is no key %s here", key.Value)
			case v.Kind != yaml.ScalarNode:
				add(v, "write it on the same line", "%s.%s: a text was expected", name.Value, key.Value)
			default:
				*to = v.Value
			}
		}
		if one.store == "" {
			add(value, "write `store: URL`, such as s3://bucket/prefix", "%s has no store", name.Value)
		}
		all[name.Value] = one
	}
	return all, problems.Err()
}

// question asks the user on the terminal whether to continue. It returns an error if standard input is not a terminal.
func (k *clouds) question(ctx context.Context, text string) error {
	if k.yes {
		return nil
	}
	if !k.Asks() {
		return exit.WithCode(exit.Usage,
			diag.Usage.Hint(errors.New("a person has to confirm this change, and there is no terminal to ask on"),
				"give --yes to publish it, or --dry-run to only see it"))
	}
	if !k.Confirm(ctx, text) {
		return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("nothing was published"),
			"answer y to publish the change"))
	}
	return nil
}

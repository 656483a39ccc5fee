package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"filippo.io/age"
	"golang.org/x/term"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish/awskms"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ring returns the available keys: those in --keys DIR, if it is given, and in the environment.
func (p *program) ring(ctx context.Context) (keyring.Ring, error) {
	if p.locks == nil {
		identities, err := p.identities()
		if err != nil {
			return keyring.Ring{}, exit.WithCode(exit.Usage, err)
		}
		p.locks = &keyring.Locks{Ask: p.passphrase, Identities: identities}
	}
	return keyring.Ring{
		Dir: p.keys, Env: p.Getenv, Locks: p.locks,
		Remote: func(ref string) (keyring.Signer, error) { return awskms.Open(ctx, ref) }, Exposed: p.warnExposed,
	}, nil
}

// warnExposed prints a warning, once for each file, if other users of this machine may read a private key.
func (p *program) warnExposed(file string, mode fs.FileMode) {
	if p.exposed[file] {
		return
	}
	if p.exposed == nil {
		p.exposed = map[string]bool{}
	}
	p.exposed[file] = true
	fmt.Fprintf(p.Err,
		"warning: other users of this machine may read the private key %s (mode %04o)\n"+
			"hint: run `chmod 600 %s`; if one of them may have read it, replace it with `corpus keys rotate`\n", file, mode,
		file)
}

// directory is like ring, but returns an error if no directory of keys was given.
func (p *program) directory(ctx context.Context) (keyring.Ring, error) {
	if p.keys == "" {
		return keyring.Ring{},
			exit.WithCode(exit.Usage, diag.Keys.Hint(errors.New("no keys were given"), "give --keys DIR, or set CORPUS_KEYS"))
	}
	return p.ring(ctx)
}

// sealed is like directory, for commands that make keys: the new keys are encrypted as seal says.
func (p *program) sealed(ctx context.Context, seal sealing) (keyring.Ring, error) {
	ring, err := p.directory(ctx)
	if err != nil {
		return ring, err
	}
	p.locks.Passphrase = seal.passphrase
	for _, text := range seal.recipients {
		recipients, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return ring, exit.WithCode(exit.Usage, diag.Keys.Hint(fmt.Errorf("%q is not an age recipient", text),
				"`age-keygen -y FILE` shows one; it begins with age1"))
		}
		p.locks.Recipients = append(p.locks.Recipients, recipients...)
	}
	return ring, nil
}

// identities returns the identities that decrypt keys which are encrypted to an age recipient.
func (p *program) identities() ([]age.Identity, error) {
	name := p.Getenv("CORPUS_AGE_IDENTITY_FILE")
	if name == "" {
		return nil, nil
	}
	f, err := walk.OpenGiven(name)
	if err != nil {
		return nil, fmt.Errorf("reading CORPUS_AGE_IDENTITY_FILE: %w", err)
	}
	defer f.Close()
	list, err := age.ParseIdentities(f)
	if err != nil {
		// The library's error may quote the line, so it is not shown.
		return nil, diag.Keys.Hint(fmt.Errorf("%s holds no age identities", name), "make one with age-keygen")
	}
	return list, nil
}

// passphrase returns the passphrase of keys: from the environment, from a file, or from the terminal. The
// passphrase of new keys is asked for twice.
func (p *program) passphrase(about string, isNew bool) (string, error) {
	if word := p.Getenv("CORPUS_PASSPHRASE"); word != "" {
		return word, nil
	}
	if name := p.Getenv("CORPUS_PASSPHRASE_FILE"); name != "" {
		data, err := walk.ReadGiven(name)
		if err != nil {
			return "", fmt.Errorf("reading CORPUS_PASSPHRASE_FILE: %w", err)
		}
		word, _, _ := strings.Cut(string(data), "\n")
		return strings.TrimSuffix(word, "\r"), nil
	}
	in := cli.InputTerminal(p.In)
	if in == nil {
		return "", exit.WithCode(exit.Usage,
			diag.Keys.Hint(errors.New("a passphrase is needed, and standard input is not a terminal"),
				"set CORPUS_PASSPHRASE, or CORPUS_PASSPHRASE_FILE"))
	}
	word, err := p.prompt(in, "Passphrase for "+about+": ")
	if err != nil || !isNew {
		return word, err
	}
	again, err := p.prompt(in, "The same once more: ")
	if err == nil && again != word {
		err = exit.WithCode(exit.Usage, errors.New("the two passphrases differ"))
	}
	return word, err
}

func (p *program) prompt(in *os.File, text string) (string, error) {
	fmt.Fprint(p.Err, text)
	word, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(p.Err)
	return string(word), err
}

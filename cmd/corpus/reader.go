package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// reader returns a client that follows a store from a root of trust, as a host does.
func (p *program) reader(ctx context.Context) (client *trust.Client, done func(), err error) {
	client, _, done, err = p.readerAndStore(ctx)
	return client, done, err
}

// readerAndStore is like reader, and also returns the store.
func (p *program) readerAndStore(ctx context.Context) (client *trust.Client, s store.Store, done func(), err error) {
	if s, err = p.openStore(); err != nil {
		return nil, nil, nil, err
	}
	root, err := p.rootOfTrust(ctx, s)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := p.checkMemory(); err != nil {
		return nil, nil, nil, err
	}
	// The client sees the store as a new host would. An older state of the store than this user has seen is refused.
	// Kept metadata never replaces files that the store has lost.
	memory := p.memoryOf(root)
	if memory != "" {
		_, _, forget, err := fresh(ctx, s, root, memory)
		if err != nil {
			return nil, nil, nil, err
		}
		forget()
	}
	client, dir, done, err := fresh(ctx, s, root, "")
	if err != nil {
		return nil, nil, nil, trust.HintRebuild(err)
	}
	p.remember(memory, dir, root)
	return client, s, done, nil
}

// fresh returns a client of a store that has only the root and, if memory is not empty, the metadata in that directory.
// It stores the metadata that it reads in dir until done is called.
func fresh(ctx context.Context, s store.Store, root []byte, memory string) (client *trust.Client, dir string,
	done func(), err error) {
	dir, done, err = durable.Scratch()
	if err != nil {
		return nil, "", nil, err
	}
	err = trust.Pin(dir, root)
	if err == nil && memory != "" {
		err = trust.Remind(dir, memory, root)
	}
	if err == nil {
		client, err = trust.Open(s, dir, nil)
	}
	if err == nil {
		err = client.Refresh(ctx)
	}
	if err != nil {
		done()
		return nil, "", nil, err
	}
	return client, dir, done, nil
}

// checkMemory returns an error if the metadata that publishers with these keys have seen is damaged: without it, an
// older state of the store would not be noticed.
func (p *program) checkMemory() error {
	if p.keys == "" {
		return nil
	}
	return trust.CheckKept(filepath.Join(p.keys, seenName))
}

// memoryOf returns the directory with the metadata that was read earlier from the store with this root: by publishers
// with these keys, or else by earlier commands of this user, in the cache. It returns "" if there is none.
func (p *program) memoryOf(root []byte) string {
	if p.keys != "" {
		beside := filepath.Join(p.keys, seenName)
		if pinned, err := trust.Pinned(beside); pinned || err != nil {
			return beside
		}
	}
	cache := p.cacheDir()
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, seenName, fmt.Sprintf("%x", sha256.Sum256(root)))
}

// cacheDir returns the cache directory of this user; "" if there is none.
func (p *program) cacheDir() string {
	cache := p.Getenv("XDG_CACHE_HOME")
	if home := p.Getenv("HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(cache) {
		return ""
	}
	return filepath.Join(cache, "corpus")
}

// remember stores the metadata that a command has read in the cache. The directory of publishers is not changed.
func (p *program) remember(memory, dir string, root []byte) {
	if memory == "" || p.keys != "" && memory == filepath.Join(p.keys, seenName) {
		return
	}
	err := trust.Pin(memory, root)
	if err == nil {
		err = trust.Remind(memory, dir, root)
	}
	if err != nil {
		p.explain("the metadata of the store was not kept in %s: %v", memory, err)
	}
}

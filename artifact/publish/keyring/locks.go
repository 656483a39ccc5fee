package keyring

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Locks encrypts private keys with age and decrypts them. It asks for a passphrase once and decrypts each key once,
// since age makes decrypting with a passphrase slow. It is safe for concurrent use.
type Locks struct {
	// Ask returns the passphrase for the purpose about. If isNew is set, the user has to enter it twice.
	Ask func(about string, isNew bool) (string, error)
	// Passphrase encrypts new keys with a passphrase.
	Passphrase bool
	// Recipients are the age recipients to which new keys are encrypted, and Identities decrypt such keys.
	Recipients []age.Recipient
	Identities []age.Identity
	// WorkFactor is the cost of trying a passphrase, as a power of two; 0 means age's default.
	WorkFactor int

	mu     sync.Mutex
	answer string
	opened map[[32]byte][]byte
}

// lock encrypts a new key, if a passphrase or recipients are set.
func (l *Locks) lock(secret []byte) ([]byte, error) {
	to := l.Recipients
	if l.Passphrase {
		passphrase, err := l.ask("new keys", true)
		if err != nil {
			return nil, err
		}
		if to, err = l.withPassphrase(passphrase); err != nil {
			return nil, err
		}
	}
	if len(to) == 0 {
		return secret, nil
	}
	var b bytes.Buffer
	a := armor.NewWriter(&b)
	w, err := age.Encrypt(a, to...)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(secret)
	err = errors.Join(err, w.Close(), a.Close())
	return b.Bytes(), err
}

// chosen reports whether an encryption of new keys is set.
func (l *Locks) chosen() bool { return l != nil && (l.Passphrase || len(l.Recipients) > 0) }

func (l *Locks) withPassphrase(passphrase string) ([]age.Recipient, error) {
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	if l.WorkFactor > 0 {
		r.SetWorkFactor(l.WorkFactor)
	}
	return []age.Recipient{r}, nil
}

// recipientsOf returns the recipients of an encrypted key, to encrypt another key to them. The key must be decrypted
// for that, since a file does not contain its recipients.
func (l *Locks) recipientsOf(from string, sealed []byte) ([]age.Recipient, error) {
	if _, err := l.open(from, sealed); err != nil {
		return nil, err
	}
	header := &stanzas{}
	_, _ = age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), header) // only to inspect the header
	if header.passphrase {
		return l.withPassphrase(l.answer)
	}
	var to []age.Recipient
	for _, identity := range l.Identities {
		if _, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), identity); err != nil {
			continue
		}
		switch i := identity.(type) {
		case *age.X25519Identity:
			to = append(to, i.Recipient())
		case *age.HybridIdentity:
			to = append(to, i.Recipient())
		}
	}
	if len(to) == 0 || len(to) != header.count {
		return nil, diag.Keys.Hint(fmt.Errorf("it is encrypted to %d recipients, and %d of them are known here",
			header.count, len(to)), "name all of them with --encrypt-to")
	}
	return to, nil
}

// stanzas is an identity that decrypts nothing and counts the recipients of a file.
type stanzas struct {
	count      int
	passphrase bool
}

// Unwrap is part of age.Identity.
func (s *stanzas) Unwrap(list []*age.Stanza) ([]byte, error) {
	for _, stanza := range list {
		s.passphrase = s.passphrase || stanza.Type == "scrypt"
		if !strings.HasSuffix(stanza.Type, "-grease") { // which is not a recipient
			s.count++
		}
	}
	return nil, age.ErrIncorrectIdentity
}

func (l *Locks) ask(about string, isNew bool) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answer != "" {
		return l.answer, nil
	}
	if l.Ask == nil {
		return "", errors.New("there is no way to ask for the passphrase")
	}
	answer, err := l.Ask(about, isNew)
	if err == nil && answer == "" {
		err = errors.New("the passphrase is empty")
	}
	if err == nil {
		l.answer = answer
	}
	return answer, err
}

// open decrypts a key.
func (l *Locks) open(from string, sealed []byte) ([]byte, error) {
	sum := sha256.Sum256(sealed)
	l.mu.Lock()
	plain, known := l.opened[sum]
	l.mu.Unlock()
	if known {
		return plain, nil
	}
	person := &asked{locks: l, about: from}
	identities := append([]age.Identity{person}, l.Identities...)
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, diag.Keys.Hint(errors.New("it is encrypted, and nothing given opens it"),
			"give the passphrase (CORPUS_PASSPHRASE, or CORPUS_PASSPHRASE_FILE), or the age identity it is encrypted to "+
				"(CORPUS_AGE_IDENTITY_FILE)")
	}
	if person.err != nil {
		return nil, person.err
	}
	if err == nil {
		plain, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, errors.New("it is encrypted, and damaged") // the library's message may quote the key
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		l.opened = map[[32]byte][]byte{}
	}
	l.opened[sum] = plain
	return plain, nil
}

// asked is an identity that decrypts with a passphrase, and asks for it when it is first needed.
type asked struct {
	locks *Locks
	about string
	err   error // reason why there is no passphrase
}

// Unwrap is part of age.Identity.
func (a *asked) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	if len(stanzas) != 1 || stanzas[0].Type != "scrypt" {
		return nil, age.ErrIncorrectIdentity
	}
	passphrase, err := a.locks.ask(a.about, false)
	if a.err = err; err != nil {
		return nil, err
	}
	id, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	return id.Unwrap(stanzas)
}

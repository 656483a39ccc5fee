package user

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strconv"
	"strings"

	"github.com/go-crypt/x/bcrypt"
	"github.com/go-crypt/x/crypt"
	"github.com/go-crypt/x/yescrypt"
)

// lockMark before a hash locks the password. Alone, it means that no password was ever set.
const lockMark = "!"

// comparePassword compares the password and its lock. If a state declares a lock, it compares the password with the
// hash after the lock mark.
func (p *present) comparePassword(c *change) {
	now, lock := c.old.Hash, p.PasswordLock != nil && *p.PasswordLock
	if lock && now != lockMark {
		now = strings.TrimPrefix(now, lockMark)
	}
	switch {
	case p.EmptyPassword:
		if now != "" {
			p.setHash(c, "empty_password", "")
		}
	case p.Password != "" && !p.has(now) && (p.EnforcePassword || unset(c.old.Hash)):
		hash := p.hash()
		if lock {
			hash = lockMark + hash
		}
		p.setHash(c, "password", hash)
		c.aged.LastChange = today()
	case p.PasswordLock != nil && !lock && unset(c.old.Hash):
		// Do not unlock an account without a password: anyone could log in.
	case p.PasswordLock != nil && lock != strings.HasPrefix(c.old.Hash, lockMark):
		c.user.LockedState = p.PasswordLock
		c.words = append(c.words, "password_lock")
		c.aged.Hash = strings.TrimPrefix(c.aged.Hash, lockMark)
		if lock {
			c.aged.Hash = lockMark + c.aged.Hash
		}
	}
}

func (p *present) setHash(c *change, argument, hash string) {
	c.aged.Hash, c.shadow.Hash = hash, &hash
	c.words = append(c.words, argument)
}

// unset reports whether no password was ever set.
func unset(hash string) bool { return hash == lockMark || hash == "!!" }

// has reports whether a hash belongs to the declared password.
func (p *present) has(hash string) bool {
	if !p.HashPassword {
		return hash == p.Password
	}
	return matches(p.Password, hash)
}

func (p *present) hash() string {
	if !p.HashPassword {
		return p.Password
	}
	salt := []byte(rand.Text()[:16])
	return "$6$" + string(salt) + "$" + string(crypt.KeySHACrypt(sha512.New, []byte(p.Password), salt, shaRounds))
}

// shaRounds is the default number of rounds of the SHA-crypt hashes.
const shaRounds = 5000

// matches reports whether a crypt(3) hash belongs to a password. It returns false for unknown kinds of hashes,
// so that they are replaced.
func matches(password, hashed string) bool {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(hashed, "$"), "$")
	switch kind {
	case "6":
		return matchesSHA(sha512.New, password, rest)
	case "5":
		return matchesSHA(sha256.New, password, rest)
	case "1":
		salt, key, _ := strings.Cut(rest, "$")
		return key == string(crypt.KeyMD5Crypt([]byte(password), []byte(salt)))
	case "2a", "2b", "2y":
		return bcrypt.CompareHashAndPassword([]byte(hashed), []byte(password)) == nil
	case "y":
		made, err := yescrypt.Hash([]byte(password), []byte(hashed))
		return err == nil && bytes.Equal(made, []byte(hashed))
	}
	return false
}

// matchesSHA reports whether a hash of the form [rounds=N$]salt$key belongs to a password.
func matchesSHA(of func() hash.Hash, password, rest string) bool {
	rounds := shaRounds
	if text, ok := strings.CutPrefix(rest, "rounds="); ok {
		text, rest, _ = strings.Cut(text, "$")
		n, err := strconv.Atoi(text)
		if err != nil || n < 1000 || n > 999_999_999 {
			return false
		}
		rounds = n
	}
	salt, key, _ := strings.Cut(rest, "$")
	return key == string(crypt.KeySHACrypt(of, []byte(password), []byte(salt), rounds))
}

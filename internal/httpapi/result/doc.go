// Package result holds the manners that the APIs of 2.x and 3.x have in common:
// the envelope {"code":…,"message":…,"data":…} with its codes, the check that every
// call makes of the names in it, the forms by which parameters are bound, and how
// each refusal is answered.
//
// It knows no call and no rule of naming. Its functions and an [Answers] are safe
// for concurrent use; a [Form] belongs to one request.
package result

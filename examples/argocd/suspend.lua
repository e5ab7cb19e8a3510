-- Nothing more is created, signed or sent; what is in flight is still followed.
obj.spec.suspend = true
return obj

"""Makes images/ and what Pillow makes of them (tests/unit/data_images.c): python3 images.py"""
import numpy as np, os
from PIL import Image, ImageOps
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images")
os.makedirs(out,exist_ok=True)
rng=np.random.default_rng(5)
yy,xx=np.mgrid[0:30,0:41]
base=np.stack([128+100*np.sin(xx/6.0)+10*rng.standard_normal(xx.shape),128+90*np.cos(yy/5.0),6.0*xx+rng.integers(0,9,xx.shape)],-1).clip(0,255).astype(np.uint8)
im=Image.fromarray(base)
im.save(f"{out}/420.jpg",quality=80)
im.save(f"{out}/progressive.jpg",quality=90,progressive=True,subsampling=0)
im.convert("L").save(f"{out}/grey.jpg",quality=85)
im.convert("CMYK").save(f"{out}/cmyk.jpg",quality=90)
im.convert("P",palette=Image.ADAPTIVE,colors=16).save(f"{out}/palette.png")
rgba=im.convert("RGBA"); rgba.putalpha(Image.fromarray((xx*6%256).astype(np.uint8))); rgba.save(f"{out}/alpha.png")
Image.fromarray((xx*800+yy*7).astype(np.uint16)).save(f"{out}/grey16.png")
im.convert("1").save(f"{out}/one_bit.png")
im.save(f"{out}/lossy.webp",quality=80); rgba.save(f"{out}/lossless.webp",lossless=True)
names=sorted(f for f in os.listdir(out) if f!="expected.bin")
blob=b""
for n in names:
    a=Image.open(f"{out}/{n}")
    if n=="grey16.png":
        a=Image.fromarray((np.array(a).astype(np.uint32)>>8).astype(np.uint8))
    rgb=a.convert("RGB")
    if n.startswith("grey16") or n=="grey.jpg" or n=="one_bit.png": pass
    blob+=np.array(ImageOps.fit(rgb,(12,10),Image.BILINEAR)).tobytes()
    blob+=np.array(rgb.resize((16,40),Image.BILINEAR)).tobytes()
    blob+=np.array(ImageOps.pad(rgb,(20,20),Image.BILINEAR)).tobytes()
    blob+=np.array(ImageOps.fit(a.convert("L"),(12,10),Image.BILINEAR)).tobytes()
    print(n,a.mode,a.size,os.path.getsize(f"{out}/{n}"))
open(f"{out}/expected.bin","wb").write(blob)
# draft
a=Image.open(f"{out}/420.jpg"); a.draft("RGB",(12,10)); print("draft",a.size)
open(f"{out}/expected.bin","ab").write(np.array(ImageOps.fit(a.convert("RGB"),(12,10),Image.BILINEAR)).tobytes())
import PIL.features as f; print(f.version("libjpeg_turbo"))

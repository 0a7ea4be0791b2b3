"""Adjectives: `French = English`, with `/feminine` and `/feminine/masculine plural` where no rule yields them.

Frequent words stand first in their class.
"""

# Before the noun in French.
BEFORE = {
    "text": """nouveau/nouvelle = new; premier = first; excellent = excellent; long = long;
        véritable = genuine; bon = good; mauvais/mauvaise = bad; autre = other""",
    "measure": """nouveau/nouvelle = new; grand = major; vaste = far-reaching; véritable = genuine;
        bon = good; premier = first; petit = small; mauvais/mauvaise = bad; autre = other""",
    "norm": """nouveau/nouvelle = new; lourd = heavy; autre = other""",
    "body": """nouveau/nouvelle = new; petit = small; grand = large; premier = first; autre = other""",
    "people": """jeune = young""",
}

# After the noun in French; these say what something is like and may stand in a predicate: X est ADJECTIVE.
QUALITY = {
    "text": """important = important; ambitieux = ambitious; équilibré = balanced;
        insuffisant = inadequate; clair = clear; détaillé = detailed; nécessaire = necessary;
        utile = useful; controversé = controversial; complexe = complex; concret/concrète = concrete;
        inacceptable = unacceptable; raisonnable = reasonable; décevant = disappointing;
        cohérent = coherent; réaliste = realistic; urgent = urgent; précis/précise = precise;
        prudent = cautious; historique = historic""",
    "measure": """efficace = effective; important = important; nécessaire = necessary; coûteux = costly;
        ambitieux = ambitious; utile = useful; cohérent = coherent; urgent = urgent; juste = fair;
        dangereux = dangerous; transparent = transparent; inutile = useless; flexible = flexible;
        controversé = controversial; indispensable = indispensable; injuste = unfair; crédible = credible;
        durable = sustainable; démocratique = democratic; fragile = fragile; obsolète = obsolete""",
    "body": """utile = useful; efficace = efficient; moderne = modern; coûteux = costly;
        indispensable = indispensable; rentable = profitable; obsolète = obsolete; innovant = innovative;
        important = important; dangereux = dangerous""",
    "norm": """nécessaire = necessary; efficace = effective; inutile = useless; injuste = unfair; coûteux = costly;
        juste = fair; dangereux = dangerous; controversé = controversial""",
    "event": """important = important; utile = useful; décevant = disappointing;
        animé = lively; décisif = decisive; difficile = difficult; historique = historic""",
    "people": """inquiet = worried; déçu = disappointed; satisfait = satisfied;
        surpris/surprise = surprised; prudent = cautious; optimiste = optimistic; fier/fière = proud;
        sceptique = sceptical; prêt = ready; unanime = unanimous;
        confiant = confident""",
}

# After the noun in French, never in a predicate.
RELATION = {
    "text": """européen = European; annuel = annual; commun = joint; final/finale/finals = final;
        provisoire = provisional; législatif = legislative; politique = political; technique = technical;
        officiel = official; confidentiel = confidential; interne = internal; financier = financial;
        ministériel = ministerial""",
    "measure": """européen = European; national = national; économique = economic; social = social;
        régional = regional; agricole = agricultural; industriel = industrial;
        environnemental = environmental; commun = common; fiscal = fiscal; international = international;
        énergétique = energy; transfrontalier = cross-border; budgétaire = budgetary;
        commercial = commercial; local = local; maritime = maritime; temporaire = temporary;
        ferroviaire = rail; humanitaire = humanitarian""",
    "body": """européen = European; national = national; régional = regional; public/publique = public;
        international = international; local = local; régional = regional; transfrontalier = cross-border;
        militaire = military""",
    "norm": """européen = European; national = national; environnemental = environmental; fiscal = fiscal;
        temporaire = temporary; international = international; technique = technical; strict = strict;
        supplémentaire = additional; obligatoire = compulsory; commercial = commercial;
        sanitaire = health; douanier = customs; discriminatoire = discriminatory; sévère = severe""",
    "event": """international = international; interparlementaire = interparliamentary; annuel = annual;
        public/publique = public; informel = informal; extraordinaire = extraordinary;
        ministériel = ministerial; régional = regional; européen = European; bilatéral = bilateral""",
    "treaty": """international = international; commercial = commercial; bilatéral = bilateral;
        européen = European; historique = historic; provisoire = provisional;
        interinstitutionnel = interinstitutional; militaire = military""",
}

NATIONALITIES = """français/française = French; allemand = German; italien = Italian;
    britannique = British; espagnol = Spanish; polonais/polonaise = Polish; européen = European;
    grec = Greek; portugais/portugaise = Portuguese; irlandais/irlandaise = Irish;
    suédois/suédoise = Swedish; danois/danoise = Danish; belge = Belgian; hongrois/hongroise = Hungarian;
    autrichien = Austrian; roumain = Romanian; néerlandais/néerlandaise = Dutch;
    finlandais/finlandaise = Finnish; américain = American; suisse = Swiss"""

# Comparatives of short English adjectives; the others take "more".
COMPARATIVES = {"clear": "clearer", "fair": "fairer", "long": "longer", "lively": "livelier", "costly": "costlier"}

DEGREES = "très = very; trop = too; extrêmement = extremely; assez = quite; particulièrement = particularly"
